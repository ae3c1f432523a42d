#!/bin/sh
# Indexes this repository's docs/ into a throwaway index and asks it a question; `make demo` runs it.
set -eu

here=$(pwd -P)
knowledge="$here/.venv/bin/knowledge"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset KNOWLEDGE_CONFIG KNOWLEDGE_DIRECTORY KNOWLEDGE_IDENTITY KNOWLEDGE_PATHS KNOWLEDGE_ENABLED

cd "$work"
printf '\n$ knowledge index docs/\n'
"$knowledge" index "$here/docs"
printf '\n$ knowledge search "move an index to another disk" --top-k 2\n'
"$knowledge" search "move an index to another disk" --top-k 2

cat <<END

That index was a throwaway. For a folder of your own:

    .venv/bin/knowledge index ~/notes
    .venv/bin/knowledge search "your question"

The index lies in knowledge/default below the folder you run it in; ~/notes itself is only read.
To type just "knowledge", from any folder:

    export PATH="$here/.venv/bin:\$PATH"
END
