/// A program of perf/rare that uses malloc only. `shrink` makes a written block of 256 MiB smaller,
/// and prints the milliseconds that this took and the peak in MiB. `aligned COUNT` prints the time
/// of a request of a page aligned to two, beside as many free pages that are not; `plain COUNT`
/// that of any page. `large COUNT` prints the time of a request above 1 MiB beside as many free
/// blocks that are too small for it. `lines BYTES` prints how many percent of the cache lines hold
/// blocks of two threads, after each freed half of the other's blocks.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using std::size_t;
constexpr size_t mib = size_t{1} << 20;

/// Returns the microseconds of CPU time that `call` takes on this thread.
template <class Call>
double time_of(Call call) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
    };
    const double begin = now();
    call();
    return now() - begin;
}

/// The times of 200 requests.
struct Times {
    double median;
    double mean;
};

/// Makes the requests, and frees the blocks afterwards.
template <class Request>
Times times_of(Request request) {
    std::vector<void*> blocks(200);
    std::vector<double> times;
    for (void*& block : blocks) {
        times.push_back(time_of([&] { block = request(); }));
        if (block == nullptr) std::abort();
    }
    for (void* const block : blocks) std::free(block);
    std::sort(times.begin(), times.end());
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    return {times[times.size() / 2], sum / static_cast<double>(times.size())};
}

int shrink() {
    void* block = std::malloc(256 * mib);
    if (block == nullptr) return 1;
    std::memset(block, 1, 256 * mib);
    const double microseconds = time_of([&] { block = std::realloc(block, 100 * mib); });
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::printf("%.2f ms, %ld MiB", microseconds / 1000, used.ru_maxrss / 1024);
    std::free(block);
    return 0;
}

int print(Times times) {
    std::printf("%.2f µs, mean %.2f", times.median, times.mean);
    return 0;
}

int request_aligned(size_t count, size_t alignment) {
    std::vector<void*> at[2];  // an even and an odd number of pages from zero
    for (size_t i = 0; i != 2 * count; ++i) {
        void* const block = std::aligned_alloc(4096, 4096);
        if (block == nullptr) return 1;
        at[reinterpret_cast<std::uintptr_t>(block) / 4096 & 1].push_back(block);
    }
    for (void* const block : at[1]) std::free(block);
    return print(times_of([=] { return std::aligned_alloc(alignment, 4096); }));
}

int request_large(size_t count) {
    std::vector<void*> blocks(2 * count);
    for (void*& block : blocks) block = std::malloc(mib + mib / 8);
    for (size_t i = 0; i < blocks.size(); i += 2) std::free(blocks[i]);
    return print(times_of([] { return std::malloc(mib + mib / 4); }));
}

int share_lines(size_t bytes) {
    constexpr size_t blocks_of_thread = 20'000;
    std::vector<void*> blocks[2];
    std::barrier turn(2);
    const auto work = [&](int thread) {
        std::vector<void*>& own = blocks[thread];
        for (int round = 0; round <= 5; ++round) {
            own.clear();
            for (size_t i = 0; i != blocks_of_thread; ++i) own.push_back(std::malloc(bytes));
            if (round == 5) break;
            turn.arrive_and_wait();
            for (size_t i = 0; i < blocks_of_thread; i += 2) std::free(blocks[1 - thread][i]);
            turn.arrive_and_wait();
            for (size_t i = 1; i < blocks_of_thread; i += 2) std::free(own[i]);
            turn.arrive_and_wait();
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    std::unordered_map<std::uintptr_t, int> lines;
    for (const int thread : {0, 1}) {
        for (void* const block : blocks[thread]) {
            const auto first = reinterpret_cast<std::uintptr_t>(block);
            for (auto line = first / 64; line <= (first + bytes - 1) / 64; ++line) {
                lines[line] |= 1 << thread;
            }
        }
    }
    size_t shared = 0;
    for (const auto& [line, threads] : lines) shared += threads == 3 ? 1 : 0;
    std::printf("%.1f %%", 100.0 * static_cast<double>(shared) / static_cast<double>(lines.size()));
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view work = count > 1 ? arguments[1] : "";
    const size_t number = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    if (work == "shrink") return shrink();
    if (number == 0) return 2;
    if (work == "aligned") return request_aligned(number, 8192);
    if (work == "plain") return request_aligned(number, 4096);
    if (work == "large") return request_large(number);
    return work == "lines" ? share_lines(number) : 2;
}
