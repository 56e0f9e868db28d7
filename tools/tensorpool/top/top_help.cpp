#include "top/top_help.hpp"

#include <array>

namespace tensorpool::command {

std::vector<ScreenLine> help_screen() {
    static constexpr std::array text = {
        "o p b c s t     processes, pools, buckets, call sites, scopes, threads",
        "a l d g n k e   arenas, plans, devices, budgets, resting, other kinds, events",
        "Tab             the next of these views; Shift-Tab the previous one",
        "Up Down Home End PageUp PageDown    move the cursor",
        "Enter           open this process; for a pool: its buckets; for a device",
        "                allocator: its statistics beside PyTorch's names",
        "Left Right      another pool, in the views buckets and threads",
        "< >             sort by another column;  i  reverse the order",
        "r               reset HIGHEST, the highest value that this top has seen,",
        "                and count CHANGE from now on",
        "u               sizes as numbers of bytes, or as KiB, MiB, GiB",
        "Escape o        back to all processes",
        "q Ctrl-C        quit",
        "",
        "IN USE    memory held by callers     CAPACITY  committed memory",
        "PEAK      the process's own          RESTING   compressed or in files",
        "UTIL      in use of the capacity     HITS      served by the thread's own cache",
        "WASTE     allocated, not requested   PARKED    free in caches",
        "FAIL      failed requests            CHANGE    of live bytes, since start or r",
        "BOUND     minimum possible peak      POOL PLAN the peaks of pool and plan",
        "SHARE     of the hard or soft limit  ASKED     how often holders were asked"};
    std::vector<ScreenLine> lines = {{"Keys of tensorpool top", Style::title}, {"", Style::plain}};
    for (const char* const line : text) lines.push_back({line, Style::plain});
    return lines;
}

}  // namespace tensorpool::command
