// A thread is stopped at each instruction of an exchange, as by a signal or on a busy machine,
// while others make as many exchanges as a tag of 16 bits can count. It must not take a magazine
// that belongs to another thread by then.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

#include "blocks/depot.hpp"
#include "pages/record_arena.hpp"
#include "support/address_space_limit_linux.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"
#include "support/stopped_thread_linux.hpp"

#ifdef __x86_64__

namespace tensorpool::blocks {
namespace {

using testing::StoppedThread;

class Exchanges {
public:
    Exchanges() {
        for (Magazine& magazine : magazines_) {
            magazine.count = 1;
            EXPECT_TRUE(depot_.enter(magazine));
            depot_.give_full(magazine);
        }
    }

    /// The number of instructions of one exchange.
    unsigned instructions() {
        return StoppedThread::instructions_of([&] { exchange(); });
    }

    /// Stops a thread after this many instructions of an exchange while others exchange magazines.
    /// Returns whether each magazine is in the depot exactly once afterwards.
    bool stay_whole(unsigned instructions) {
        StoppedThread::stop(
            instructions, [] {}, [&] { exchange(); }, [&] { exchange_as_often_as_a_tag_counts(); });
        return is_whole();
    }

private:
    static constexpr std::size_t tags = 65'536;

    /// Takes up to `max_count` magazines and gives them back. Returns their number.
    unsigned exchange(unsigned max_count = 1) {
        Magazine* const magazine = depot_.take_full();
        if (magazine == nullptr) return 0;
        const unsigned more = max_count == 1 ? 0 : exchange(max_count - 1);
        depot_.give_full(*magazine);
        return 1 + more;
    }

    // Two threads at first, so that the topmost magazine ends up above a different one.
    void exchange_as_often_as_a_tag_counts() {
        std::atomic<std::size_t> exchanged = 0;
        std::atomic<unsigned> ready = 0;
        const auto some = [&] {
            for (++ready; ready != 2;) {
            }
            for (unsigned i = 0; i != 2'000; ++i) exchanged += exchange(1 + i % 3);
        };
        std::thread other(some);
        some();
        other.join();
        while (exchanged != tags) exchanged += exchange();
    }

    bool is_whole() {
        std::array<bool, count> found{};
        for (unsigned i = 0; i != count; ++i) {
            Magazine* const magazine = depot_.take_full();
            if (magazine == nullptr) return false;
            if (std::exchange(found[static_cast<unsigned>(magazine - magazines_.data())], true)) {
                return false;
            }
        }
        if (depot_.take_full() != nullptr) return false;
        for (Magazine& magazine : magazines_) depot_.give_full(magazine);
        return true;
    }

    static constexpr unsigned count = 4;
    pages::RecordArena records_;
    Depot depot_{records_};
    std::array<Magazine, count> magazines_;
};

/// Half of the instructions: 0 or 1.
class StoppedExchange : public ::testing::TestWithParam<unsigned> {};

TEST_P(StoppedExchange, TakesNoForeignMagazine) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers add too many instructions";
    EXPECT_TRUE(testing::holds_in_child([] {
        Exchanges exchanges;
        const unsigned all = exchanges.instructions();
        constexpr unsigned stops = 400;
        for (unsigned stop = GetParam(); stop < stops; stop += 2) {
            if (!exchanges.stay_whole(1 + stop * 7 % stops * all / stops)) return false;
        }
        return true;
    }));
}

TEST(Depot, RefusesAMagazineThatItHasNoRoomFor) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers need memory of their own";
    EXPECT_TRUE(testing::holds_in_child([] {
        pages::RecordArena records;
        Depot depot(records);
        Magazine first;
        Magazine second;
        if (!depot.enter(first) || !testing::leave_address_space(0)) return false;
        while (records.allocate(64, 64) != nullptr) {
        }
        return !depot.enter(second);
    }));
}

INSTANTIATE_TEST_SUITE_P(Halves, StoppedExchange, ::testing::Values(0U, 1U));

}  // namespace
}  // namespace tensorpool::blocks

#endif
