# SPDX-License-Identifier: Apache-2.0
# fish completion of profctl, which says itself what may follow.

function __profctl_complete
    set -l before (commandline -opc)
    set -l word "$(commandline -ct | string unescape)"
    for line in ($before[1] --complete $before[2..-1] $word 2>/dev/null)
        switch $line
            case :files
                set -l before (string match -r -- '^--[^=]*=' $word)
                for path in (__fish_complete_path (string replace -- "$before" '' $word))
                    echo "$before$path"
                end
            case :commands
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end

complete -c profctl -f -a '(__profctl_complete)'
