/// Question: how much memory does the pool take beyond the blocks that it hands out?

#include <cstdio>

#include "support/child.hpp"

#include "memory_metrics.hpp"

namespace {

constexpr std::size_t KiB = 1024;
int missed = 0;

const char* verdict(bool met) {
    if (!met) ++missed;
    return met ? "met" : "missed";
}

/// Reports a metric that could not be measured; that counts as missed.
void print_unmeasured(const char* label) {
    std::printf("  %-42s could not be measured: %s\n", label, verdict(false));
}

void print_records(const char* label, std::size_t bytes, tensorpool::Checks checks, double aim) {
    const auto measured = perf::in_a_child([&] { return perf::records(bytes, checks); });
    if (!measured) return print_unmeasured(label);
    std::printf("  %-42s %8.2f %% %8.2f %%   < %4.0f %%    %s\n", label, measured->in_use * 100,
                measured->freed * 100, aim * 100,
                verdict(measured->in_use < aim && measured->freed < aim));
    std::fflush(stdout);
}

/// Prints the measured value divided by `unit`; `aim` is in units as well.
void print_metric(const char* label, double (*measure)(), double unit, const char* unit_name,
                  double aim) {
    const auto measured = perf::in_a_child(measure);
    if (!measured) return print_unmeasured(label);
    const double units = *measured / unit;
    std::printf("  %-42s %17.0f %-3s   < %4.0f %-3s  %s\n", label, units, unit_name, aim, unit_name,
                verdict(units < aim));
    std::fflush(stdout);
}

void print_all_records() {
    using tensorpool::Checks;
    std::printf("  %-42s %10s %10s   %8s\n", "records for 256 MiB of blocks of", "in use",
                "all freed", "aim");
    print_records("64 B", 64, Checks::off, 0.01);
    print_records("128 B", 128, Checks::off, 0.01);
    print_records("1 KiB", KiB, Checks::off, 0.01);
    print_records("64 KiB", 64 * KiB, Checks::off, 0.01);
    print_records("64 B, with checks", 64, Checks::basic, 0.03);
    print_records("128 B, with checks", 128, Checks::basic, 0.02);
    print_records("1 KiB, with checks", KiB, Checks::basic, 0.01);
}

}  // namespace

/// Returns 1 when an aim was missed.
int main() {
    print_all_records();
    std::printf("\n");
    print_metric("an idle pool", perf::idle_pool, KiB, "KiB", 1024);
    // A few pages may belong to the program itself. What one pool leaves appears 2,000 times.
    print_metric("left by 2,000 pools, one after another", perf::bytes_left_by_pools, KiB, "KiB",
                 64);
    print_metric("mappings left by them", perf::mappings_left_by_pools, 1, "", 1);
    print_metric("parked by one block of each bucket", perf::parked, KiB, "KiB", 512);
    print_metric("left after all sizes in turn and trim()", perf::left_after_trim, KiB, "KiB",
                 1024);
    return missed == 0 ? 0 : 1;
}
