"""What is the same in every script of a shell, whatever verbs there are."""

BASH_HEAD = "# bash completion of knowledge, made by `knowledge completion bash`\n"
BASH_BODY = r"""
__knowledge_offer() {
  local kind=$1 cur=$2 config=$3 program=${COMP_WORDS[0]/#\~/$HOME} found _
  shift 3
  case $kind in
    choices) COMPREPLY=($(compgen -W "$*" -- "$cur")) ;;
    files)
      if ! compopt -o default 2>/dev/null; then
        local IFS=$'\n'
        COMPREPLY=($(compgen -f -- "$cur"))
      fi
      ;;
    roots|runs)
      while IFS=$'\t' read -r found _; do
        [[ $found == "$cur"* ]] && COMPREPLY+=("$(printf %q "$found")")
      done < <("$program" completion "$kind" ${config:+--config "${config/#\~/$HOME}"} 2>/dev/null </dev/null)
      ;;
  esac
}

_knowledge() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' config='' plain='' word i REPLY
  COMPREPLY=()
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      --) plain=1; break ;;
      -*)
        __knowledge_takes "$verb $word"
        if [[ $REPLY ]]; then
          ((i++))
          [[ ${COMP_WORDS[i]} == = ]] && ((i++))
          [[ $word == --config ]] && ((i < COMP_CWORD)) && config=${COMP_WORDS[i]}
        fi
        ;;
      *)
        __knowledge_below "$verb"
        [[ $REPLY ]] && verb=${verb:+$verb }$word
        ;;
    esac
  done
  if [[ ! $plain && $prev == -* ]]; then
    __knowledge_takes "$verb $prev"
    if [[ $REPLY ]]; then
      set -- $REPLY
      __knowledge_offer "$1" "$cur" "$config" "${@:2}"
      return
    fi
  fi
  if [[ ! $plain && $cur == -* ]]; then
    __knowledge_options "$verb"
    COMPREPLY=($(compgen -W "$REPLY" -- "$cur"))
    return
  fi
  __knowledge_below "$verb"
  if [[ $REPLY ]]; then
    COMPREPLY=($(compgen -W "$REPLY" -- "$cur"))
    return
  fi
  __knowledge_arguments "$verb"
  set -- $REPLY
  __knowledge_offer "${1-}" "$cur" "$config" "${@:2}"
}

complete -F _knowledge knowledge rag
"""

ZSH_HEAD = "#compdef knowledge rag\n# zsh completion of knowledge, made by `knowledge completion zsh`\n"
ZSH_BODY = r"""
__knowledge_offer() {
  local kind=$1 config=$2
  shift 2
  local -a found asked
  case $kind in
    choices) compadd -- "$@" ;;
    files) _files ;;
    roots|runs)
      asked=("${${(Q)words[1]}/#\~/$HOME}" completion $kind)
      [[ -n $config ]] && asked+=(--config "${${(Q)config}/#\~/$HOME}")
      found=("${(@f)$("${asked[@]}" 2>/dev/null </dev/null)}")
      compadd -- "${(@)found%%$'\t'*}"
      ;;
  esac
}

_knowledge() {
  local prev=${words[CURRENT-1]} verb='' config='' plain='' word REPLY
  local -i i
  local -a rows taken
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    case $word in
      --) plain=1; break ;;
      --config=*) config=${word#*=} ;;
      -*)
        __knowledge_takes "$verb $word"
        if [[ -n $REPLY ]]; then
          ((i++))
          [[ $word == --config ]] && ((i < CURRENT)) && config=${words[i]}
        fi
        ;;
      *)
        __knowledge_below "$verb"
        [[ -n $REPLY ]] && verb=${verb:+$verb }$word
        ;;
    esac
  done
  if [[ -z $plain && ${words[CURRENT]} == --*=* ]]; then
    prev=${words[CURRENT]%%=*}
    compset -P '*='
  fi
  if [[ -z $plain && $prev == -* ]]; then
    __knowledge_takes "$verb $prev"
    if [[ -n $REPLY ]]; then
      taken=(${(s: :)REPLY})
      __knowledge_offer "$taken[1]" "$config" "${(@)taken[2,-1]}"
      return
    fi
  fi
  if [[ -z $plain && ${words[CURRENT]} == -* ]]; then
    __knowledge_options "$verb"
    rows=("${(@f)REPLY}")
    _describe -o option rows
    return
  fi
  __knowledge_below "$verb"
  if [[ -n $REPLY ]]; then
    rows=("${(@f)REPLY}")
    _describe -V verb rows
    return
  fi
  __knowledge_arguments "$verb"
  taken=(${(s: :)REPLY})
  __knowledge_offer "$taken[1]" "$config" "${(@)taken[2,-1]}"
}

if [[ ${funcstack[1]-} == _knowledge ]]; then
  _knowledge "$@"
else
  compdef _knowledge knowledge rag
fi
"""

FISH_HEAD = r"""# fish completion of knowledge, made by `knowledge completion fish`
function __knowledge_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l verb
    set -l skips 0
    for word in $words
        if test $skips = 1
            set skips 0
        else if test "$word" = --config
            set skips 1
        else if not string match -q -- '-*' $word
            set -a verb $word
            if not contains -- $verb[1] GROUPS; or test (count $verb) = 2
                break
            end
        end
    end
    test "$verb" = "$argv[1]"
end
function __knowledge_ask
    set -l words (commandline -opc)
    set -l config
    if set -l at (contains -i -- --config $words)
        set config --config $words[(math $at + 1)]
    end
    $words[1] completion $argv[1] $config 2>/dev/null </dev/null
end
"""
