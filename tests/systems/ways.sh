# tests/systems/ways.sh - the ways of a long test, each a line of a table: for systems.sh and emit_targets.sh, which read it
# with `.`.
#
# run_way runs $way. It sets $ran, a sentence of what ran, and $counted, and returns 77 if a program is missing. Logs are
# $out/WAY.log; $out/WAY.why says what is missing.

has() { command -v "$1" > /dev/null 2>&1; }
need() { for program in "$@"; do has "$program" || { echo "no $program" > "$out/$way.why"; return 77; }; done; }

# row WAY RAN COUNTED SECONDS: a line; $widths are those of the first three
row() {
    # shellcheck disable=SC2086 # three numbers
    set -- $widths "$@"
    printf "%-$1s| %-$2s| %-$3s| %s\n" "$4" "$5" "$6" "$7"
}

show_faults() {
    faults=$(grep -E 'error|FAILED|:[FE]:' "$1" || cat "$1")
    echo "$faults" | tail -n 12
}

# show_ways COUNTED WAY...: runs the ways, and prints the table, whose third column is headed
# COUNTED. Sets failed and ran_any to 0 or 1.
show_ways() {
    failed=0 ran_any=0
    row way 'what ran' "$1" seconds
    shift
    for way in "$@"; do
        begin=$(date +%s)
        rm -f "$out/$way.why" "$out/$way.row"
        ( run_way && status=0 || status=$?; echo "$status|$ran|$counted" > "$out/$way.row" ) > "$out/$way.log" 2>&1 ||
            { tail -n 3 "$out/$way.log" >&2; exit 2; }
        IFS='|' read -r status ran counted < "$out/$way.row"
        case $status in
            0) ran_any=1 ;;
            77) ran="not run: $(cat "$out/$way.why" 2> /dev/null)" ;;
            *) failed=1 ran="FAILED: ${ran:-does not build}, see $out/$way.log" ;;
        esac
        row "$way" "$ran" "$counted" $(($(date +%s) - begin))
        case $status in 0 | 77) ;; *) show_faults "$out/$way.log" ;; esac
    done
}

# Exits as the table says.
end_ways() {
    [ $failed = 0 ] || exit 1
    [ $ran_any = 1 ] || exit 77
    exit 0
}
