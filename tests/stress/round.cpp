#include "stress/round.hpp"

#include <thread>
#include <utility>

#include "stress/last_words.hpp"
#include "stress/watcher.hpp"
#include "stress/worker.hpp"

namespace tensorpool::stress {
namespace {

// The last numbers are those of workers that only free.
constexpr std::uint64_t cleaner = 1 << 20;

// Threads one after another in one place. What one holds at its end is split: some it frees in its
// last destructors, some it leaves to the next.
void live_again_and_again(Round& round, const CommandLine& line, std::uint64_t seed,
                          unsigned place) {
    std::vector<HoldingPointer> held;
    for (unsigned life = 0; life < line.lives; ++life) {
        const std::uint64_t number = std::uint64_t{place} * line.lives + life + 1;
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
    Worker last(round, seed, 2 * cleaner + place);
    for (HoldingPointer& holding : held) last.deallocate(std::move(holding));
}

void run_threads(Round& round, const CommandLine& line, std::uint64_t seed) {
    std::atomic<bool> done = false;
    std::thread watcher([&] { watch(round, seed, done); });
    std::vector<std::thread> places;
    for (unsigned place = 0; place < line.threads; ++place) {
        places.emplace_back([&, place] { live_again_and_again(round, line, seed, place); });
    }
    for (std::thread& place : places) place.join();
    done.store(true, std::memory_order_relaxed);
    watcher.join();
}

void free_what_was_left(Round& round, std::uint64_t seed) {
    Worker worker(round, seed, 3 * cleaner);
    for (std::size_t place = 0; place < Exchange::places; ++place) {
        HoldingPointer left = round.exchange.swap(place, nullptr);
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
