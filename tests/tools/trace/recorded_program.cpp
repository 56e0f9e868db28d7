/// @file
/// A process to be recorded: prints "ready", and executes the lines of its standard input until
/// that ends.
///
///     pairs COUNT            blocks of 100 B, each freed at once
///     keep COUNT             blocks of 70,000 B, freed at the end
///     threads COUNT PAIRS    this many threads, which free each other's blocks
///     phases COUNT           arenas, scratches and scopes
///     large                  one large block, which takes the slow path
///     forever                pairs without end
///     end                    ends the process

#include <array>
#include <atomic>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/statistics_scope.hpp>
#include <tensorpool/tensorpool.hpp>

namespace {

using tensorpool::MemoryPool;

MemoryPool& pool() {
    return tensorpool::get_global_memory_pool();
}

void pairs(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) pool().deallocate(pool().allocate(100), 100);
}

/// Each thread puts its blocks where any other thread finds them.
class Exchange {
public:
    void work(std::size_t count, std::size_t begin) {
        for (std::size_t i = begin; i < begin + count; ++i) {
            void* const mine = pool().allocate(200);
            void* const other = positions_[i * 7 % positions_.size()].exchange(mine);
            if (other != nullptr) pool().deallocate(other, 200);
        }
    }
    ~Exchange() {
        for (auto& position : positions_) {
            if (void* const block = position.exchange(nullptr)) pool().deallocate(block, 200);
        }
    }

private:
    std::array<std::atomic<void*>, 64> positions_ = {};
};

void threads(std::size_t count, std::size_t pairs_of_each) {
    Exchange exchange;
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < count; ++i) {
        running.emplace_back([&, i] { exchange.work(pairs_of_each, i); });
    }
    for (std::thread& thread : running) thread.join();
}

void phases(std::size_t count) {
    tensorpool::ArenaOptions options;
    options.name = "batch";
    tensorpool::Arena arena(options);
    for (std::size_t i = 0; i < count; ++i) {
        const tensorpool::StatisticsScope scope("forward");
        const auto mark = arena.mark();
        static_cast<void>(arena.allocate(1000));
        const tensorpool::ScratchScope inner;
        static_cast<void>(tensorpool::Scratch::local().allocate(500));
        arena.release_to(mark);
    }
}

class Kept {
public:
    void add(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) blocks_.push_back(pool().allocate(70'000));
    }
    ~Kept() {
        for (void* const block : blocks_) pool().deallocate(block, 70'000);
    }

private:
    std::vector<void*> blocks_;
};

}  // namespace

int main() {
    Kept kept;
    pairs(1);
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string order;
        std::size_t count = 0;
        std::size_t more = 0;
        words >> order >> count >> more;
        if (order == "end") break;
        if (order == "pairs") pairs(count);
        if (order == "keep") kept.add(count);
        if (order == "threads") threads(count, more);
        if (order == "phases") phases(count);
        if (order == "large") pool().deallocate(pool().allocate(1'000'000));
        while (order == "forever") pairs(1000);
        std::cout << "done" << std::endl;
    }
}
