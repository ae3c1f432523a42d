#!/bin/sh
# Indexes this repository's docs/ into a throwaway index, with the model that needs no server and no key, and asks it
# two questions; `make demo` runs it.
set -eu

here=$(pwd -P)
knowledge="$here/.venv/bin/knowledge"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for name in $(env | sed -n 's/^\(KNOWLEDGE_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done

cd "$work"
cat > knowledge.yaml <<END
knowledge:
  embeddings:
    provider: local  # a small model inside the program: no server, no key, nothing leaves this machine
END
printf '\n$ cat knowledge.yaml\n'
cat knowledge.yaml
printf '\n$ knowledge index docs/\n'
"$knowledge" index "$here/docs"
printf '\n$ knowledge search "move an index" --top-k 2\n'
"$knowledge" search "move an index" --top-k 2
printf '\nNow in words that stand nowhere in docs/:\n'
printf '\n$ knowledge search "omit certain subfolders" --top-k 1\n'
"$knowledge" search "omit certain subfolders" --top-k 1

cat <<END

That index was a throwaway. For a folder of your own:

    .venv/bin/knowledge index ~/notes
    .venv/bin/knowledge search "your question"

The index lies in knowledge/default below the folder you run it in; ~/notes itself is only read. To be found by their
meaning too, your texts need the knowledge.yaml from above, in the folder you run it in.
To type just "knowledge", from any folder:

    export PATH="$here/.venv/bin:\$PATH"
END
