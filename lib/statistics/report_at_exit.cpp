#include "statistics/report_at_exit.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <tensorpool/snapshot.hpp>

#include "platform/environment.hpp"

namespace tensorpool::statistics {
namespace {

void print_report() {
    const std::string report = to_text(take_snapshot());
    std::fwrite(report.data(), 1, report.size(), stderr);
}

}  // namespace

bool report_wanted_by_environment() {
    bool wanted = false;
    static constexpr platform::Named<bool> answers[] = {{"1", true}, {"0", false}, {"", false}};
    platform::read("TENSORPOOL_REPORT", wanted, "1 or 0", "0",
                   [](std::string_view text) { return platform::parse_choice(text, answers); });
    return wanted;
}

void report_at_exit_where_wanted() {
    [[maybe_unused]] static const bool looked = [] {
        if (report_wanted_by_environment()) std::atexit(print_report);
        return true;
    }();
}

}  // namespace tensorpool::statistics
