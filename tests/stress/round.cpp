#include "stress/round.hpp"

#include <thread>
#include <utility>

#include "stress/last_words.hpp"
#include "stress/watcher.hpp"
#include "stress/worker.hpp"

namespace tensorpool::stress {
namespace {

// Numbers from here on belong to workers that only free.
constexpr std::uint64_t cleaner = 1 << 20;

// Runs threads one after another. The blocks that a thread holds at its end are split: it frees one
// half in its last destructors and leaves the other half to the next thread.
void run_threads_in_turn(Round& round, const CommandLine& line, std::uint64_t seed,
                         unsigned index) {
    std::vector<HoldingPointer> held;
    for (unsigned turn = 0; turn < line.lives; ++turn) {
        const std::uint64_t number = std::uint64_t{index} * line.lives + turn + 1;
        std::thread([&] {
            Worker worker(round, seed, number);
            if (!line.map) worker.crowd(line.calls * 16);
            worker.work(line.calls, held);
            std::vector<HoldingPointer> last;
            while (held.size() > last.size()) {
                last.push_back(std::move(held.back()));
                held.pop_back();
            }
            free_when_this_thread_ends(round, cleaner + number, std::move(last));
        }).join();
    }
    Worker last(round, seed, 2 * cleaner + index);
    for (HoldingPointer& holding : held) last.deallocate(std::move(holding));
}

void run_threads(Round& round, const CommandLine& line, std::uint64_t seed) {
    std::atomic<bool> done = false;
    std::thread watcher([&] { watch(round, seed, done); });
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < line.threads; ++index) {
        threads.emplace_back([&, index] { run_threads_in_turn(round, line, seed, index); });
    }
    for (std::thread& thread : threads) thread.join();
    done.store(true, std::memory_order_relaxed);
    watcher.join();
}

void free_what_was_left(Round& round, std::uint64_t seed) {
    Worker worker(round, seed, 3 * cleaner);
    for (std::size_t cell = 0; cell < Exchange::cells; ++cell) {
        HoldingPointer left = round.exchange.swap(cell, nullptr);
        if (left != nullptr) worker.deallocate(std::move(left));
    }
}

}  // namespace

void run_round(const CommandLine& line, std::uint64_t seed) {
    LiveMap map;
    Round round;
    round.pools = make_pools(line.plant);
    if (line.map) round.map = &map;
    run_threads(round, line, seed);
    free_what_was_left(round, seed);
    for (auto& pool : round.pools) check_that_nothing_is_left(*pool);
}

}  // namespace tensorpool::stress
