/// The main function of all questions that use Google Benchmark. It adds the allocator in use and
/// the versions to the report.

#include <benchmark/benchmark.h>
#include <gnu/libc-version.h>

#include <boost/version.hpp>

#include "support/allocator_in_use.hpp"

int main(int argc, char** argv) {
    benchmark::AddCustomContext("allocator", perf::allocator_in_use());
    benchmark::AddCustomContext("compiler", __VERSION__);
    benchmark::AddCustomContext("glibc", gnu_get_libc_version());
    benchmark::AddCustomContext("boost", BOOST_LIB_VERSION);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}
