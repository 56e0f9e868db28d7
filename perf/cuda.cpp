/// Question: what does memory of a card cost, from the caching allocator and from the driver's own
/// stream-ordered allocation, which keeps all free memory in its pool?

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/stream_ordered_allocator.hpp>

#include "support/cores.hpp"
#include "support/device_pairs.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::CachingAllocator;
using tensorpool::CachingOptions;
using tensorpool::CudaBackend;
using tensorpool::DeviceStatus;
using tensorpool::StorageKind;
using tensorpool::StreamOrderedAllocator;

constexpr int card = 0;
constexpr std::size_t mib = std::size_t{1} << 20;

/// Counts the calls of functions of the driver, if the library does: the tests' fake driver.
class DriverCalls {
public:
    explicit DriverCalls(const std::string& library) {
        void* const file = dlopen(library.c_str(), RTLD_NOW);
        if (file != nullptr) count_ = reinterpret_cast<Count>(dlsym(file, "fake_cuda_calls"));
    }
    /// Returns the number of calls that `work()` makes; none if they are not counted.
    template <class Work>
    std::optional<unsigned long long> of(Work work) const {
        if (count_ == nullptr) return std::nullopt;
        const unsigned long long before = count_("");
        work();
        return count_("") - before;
    }

private:
    using Count = unsigned long long (*)(const char* function);
    Count count_ = nullptr;
};

struct Setting {
    const perf::Options& options;
    perf::Report& report;
    CudaBackend& backend;
    const DriverCalls& calls;

    /// Returns a cell with a value that is judged by the aim. The quick form measures nothing.
    std::string judge(double value, double aim) const {
        return options.quick ? text(value) : report.judge(value, aim);
    }
};

void measure_hits(const Setting& setting) {
    CachingAllocator ours(setting.backend, card);
    StreamOrderedAllocator driver(setting.backend, card);
    perf::Floor floor;
    const std::size_t pairs = setting.options.quick ? 100 : 10'000;
    std::vector<perf::Cells> rows = {{"one thread, ns a pair", "floor", "ours", "the driver's",
                                      "ours of that", "driver calls of 100 pairs"}};
    std::vector<std::size_t> sizes = {1000, 1'000'000};
    if (!setting.options.quick) sizes.push_back(100'000'000);
    for (const std::size_t bytes : sizes) {
        const perf::Turns measured(setting.options.rounds,
                                   {[&] { return perf::pair_ns(floor, pairs, bytes, nullptr); },
                                    [&] { return perf::pair_ns(ours, pairs, bytes, nullptr); },
                                    [&] { return perf::pair_ns(driver, pairs, bytes, nullptr); }});
        const auto calls = setting.calls.of([&] { perf::pair_ns(ours, 100, bytes, nullptr); });
        rows.push_back(
            {std::to_string(bytes) + " B", text(measured.median(0), 1), text(measured.median(1), 1),
             text(measured.median(2), 1), setting.judge(measured.ratio(1, 2), 0.1),
             calls ? setting.report.judge(static_cast<double>(*calls), 0, 0) : "not counted"});
    }
    setting.report.print("cuda: a block that the same stream freed recently", rows);
}

/// Returns the milliseconds until a new allocator has allocated a block.
template <class Allocator, class... Options>
double growth_ms(const Setting& setting, std::size_t bytes, const Options&... options) {
    Allocator allocator(setting.backend, card, options...);
    const double seconds = perf::seconds_of([&] { (void)allocator.allocate(bytes); });
    return seconds * 1e3;
}

/// Returns the milliseconds of the driver's stream-ordered allocation, whose pool is empty.
double driver_growth_ms(const Setting& setting, std::size_t bytes) {
    const double ms = growth_ms<StreamOrderedAllocator>(setting, bytes);
    std::size_t given_back = 0;
    (void)setting.backend.trim_stream_ordered(card, given_back);
    return ms;
}

/// Returns the milliseconds of one call to the driver for all of the memory; NaN if it fails.
double floor_growth_ms(const Setting& setting, std::size_t bytes) {
    void* memory = nullptr;
    DeviceStatus status = DeviceStatus::failed;
    const double seconds = perf::seconds_of([&] {
        status = setting.backend.allocate(card, bytes, StorageKind::private_storage, &memory);
    });
    if (status != DeviceStatus::ok) return std::nan("");
    (void)setting.backend.deallocate(card, memory, bytes, StorageKind::private_storage);
    return seconds * 1e3;
}

void measure_growth(const Setting& setting) {
    tensorpool::DeviceMemoryInfo info;
    (void)setting.backend.memory_info(card, info);
    const std::size_t bytes = setting.options.quick
                                  ? 64 * mib
                                  : std::min(10 * 1024 * mib, info.total_bytes / 2 / mib * mib);
    CachingOptions slabs;
    slabs.expandable = false;
    const std::vector<std::pair<std::string, perf::Subject>> subjects = {
        {"floor: one call", [&] { return floor_growth_ms(setting, bytes); }},
        {"ours, expandable slabs", [&] { return growth_ms<CachingAllocator>(setting, bytes); }},
        {"ours, plain slabs", [&] { return growth_ms<CachingAllocator>(setting, bytes, slabs); }},
        {"the driver's", [&] { return driver_growth_ms(setting, bytes); }}};
    std::vector<perf::Subject> run;
    for (const auto& [name, subject] : subjects) run.push_back(subject);
    const perf::Turns measured(std::min(setting.options.rounds, 5), run);

    std::vector<perf::Cells> rows = {{"one block of " + std::to_string(bytes / mib) + " MiB", "ms",
                                      "of the floor", "of the driver's"}};
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        rows.push_back({subjects[i].first, text(measured.median(i)), text(measured.ratio(i, 0)),
                        text(measured.ratio(i, 3))});
    }
    setting.report.print("cuda: growth", rows);
}

/// Removes `--library PATH` from the arguments and returns the path; "" if there is none.
std::string take_library(int& argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string_view(argv[i]) != "--library") continue;
        const std::string library = argv[i + 1];
        std::copy(argv + i + 2, argv + argc + 1, argv + i);
        argc -= 2;
        return library;
    }
    return "";
}

}  // namespace

int main(int argc, char** argv) {
    const std::string library = take_library(argc, argv);
    const perf::Options options = perf::read_options(argc, argv, 101);
    perf::Report report(options);
    perf::stay_on_core(0);
    CudaBackend backend = library.empty() ? CudaBackend() : CudaBackend(library);
    if (backend.device_count() == 0) {
        report.print_unmeasured("cuda", backend.last_error());
        return report.status();
    }
    std::printf("%s\n\n", backend.device_name(card).c_str());
    const DriverCalls calls(library);
    const Setting setting = {options, report, backend, calls};
    measure_hits(setting);
    measure_growth(setting);
    return report.status();
}
