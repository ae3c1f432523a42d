// Speaks to an MCP server with the protocol's JavaScript SDK and prints what it saw as one JSON object.
// node mcp_node_client.cjs FOLDER-WITH-NODE_MODULES (--http URL | COMMAND ARGUMENTS...)
const { createRequire } = require("node:module");
const [folder, ...target] = process.argv.slice(2);
const sdk = createRequire(`${folder}/`);
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");

function transport() {
  if (target[0] === "--http") {
    const { StreamableHTTPClientTransport } = sdk("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return new StreamableHTTPClientTransport(new URL(target[1]));
  }
  const { StdioClientTransport } = sdk("@modelcontextprotocol/sdk/client/stdio.js");
  const [command, ...args] = target;
  return new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
}

async function main() {
  const client = new Client({ name: "test", version: "0" });
  const troubles = [];
  client.onerror = (error) => troubles.push(String(error));
  await client.connect(transport());
  const call = (name, args) => client.callTool({ name, arguments: args });
  const seen = {
    server: client.getServerVersion().name,
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    search: (await call("knowledge_search", { query: "loaf" })).structuredContent,
    refused: await call("knowledge_search", { query: 7 }),
    resource: (await client.readResource({ uri: "knowledge://docs/bread.md#0" })).contents[0].text,
    unknown: await client.readResource({ uri: "file:///etc/passwd" }).catch((error) => error.code),
    together: (await Promise.all(Array.from({ length: 10 }, () => call("knowledge_read", { path: "docs/bread.md" }))))
      .map((answer) => answer.structuredContent.status),
  };
  await client.close();
  process.stdout.write(JSON.stringify({ ...seen, troubles }));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
