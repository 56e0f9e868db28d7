// A thread that is stopped at any instruction of an exchange, by a signal or a busy machine, while
// others make as many exchanges as a tag of 16 bits can count: it must not take what is another's
// by then.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

#include "blocks/depot.hpp"
#include "pages/record_arena.hpp"
#include "support/child_process.hpp"
#include "support/process_figures.hpp"
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

    /// How many instructions a thread makes for one.
    unsigned instructions() {
        return StoppedThread::instructions_of([&] { exchange(); });
    }

    /// Whether a thread that stops after so many, and the others, find each magazine once
    /// afterwards.
    bool stay_whole(unsigned instructions) {
        StoppedThread::stop(
            instructions, [] {}, [&] { exchange(); }, [&] { exchange_as_often_as_a_tag_counts(); });
        return is_whole();
    }

private:
    static constexpr std::size_t tags = 65'536;

    /// How many magazines were taken, and given back: up to `most`.
    unsigned exchange(unsigned most = 1) {
        Magazine* const magazine = depot_.take_full();
        if (magazine == nullptr) return 0;
        const unsigned more = most == 1 ? 0 : exchange(most - 1);
        depot_.give_full(*magazine);
        return 1 + more;
    }

    // First two threads at once, so that what is on top comes to lie on something else.
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

TEST(Depot, ThreadThatWasStoppedInAnExchangeTakesNothingThatIsAnothers) {
    if (testing::sanitized()) GTEST_SKIP() << "their own instructions are too many";
    EXPECT_TRUE(testing::holds_in_child([] {
        Exchanges exchanges;
        const unsigned all = exchanges.instructions();
        constexpr unsigned stops = 400;
        for (unsigned stop = 0; stop != stops; ++stop) {
            if (!exchanges.stay_whole(1 + stop * 7 % stops * all / stops)) return false;
        }
        return true;
    }));
}

}  // namespace
}  // namespace tensorpool::blocks

#endif
