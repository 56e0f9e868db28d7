#include "leaks/observation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/timeline.hpp>

namespace tensorpool::command::leaks {
namespace {

/// Watches this process.
class WatchTest : public ::testing::Test {
protected:
    WatchTest() { watch_.look(process_); }

    void end_iteration() {
        mark_timeline("step");
        watch_.look(process_);
    }

    MemoryPool pool_;
    StatisticsReader process_ = StatisticsReader::attach(static_cast<std::uint64_t>(getpid()));
    Watch watch_{{.mark = "step", .iterations = 3}};
};

TEST_F(WatchTest, AProfileCountsOnceAnotherIterationHasEnded) {
    end_iteration();
    EXPECT_EQ(watch_.observation().profiles(), 0U);
    watch_.look(process_);
    EXPECT_EQ(watch_.observation().profiles(), 0U);
    end_iteration();
    EXPECT_EQ(watch_.observation().profiles(), 1U);
    EXPECT_EQ(watch_.observation().iterations(), 0U);
    end_iteration();
    EXPECT_EQ(watch_.observation().iterations(), 1U);
}

TEST_F(WatchTest, IterationsThatEndBetweenTwoLooksHaveOneProfile) {
    end_iteration();
    mark_timeline("step");
    mark_timeline("step");
    end_iteration();
    end_iteration();
    EXPECT_EQ(watch_.observation().profiles(), 2U);
    EXPECT_EQ(watch_.observation().iterations(), 3U);
}

TEST_F(WatchTest, OtherMarksEndNoIteration) {
    for (int i = 0; i < 3; ++i) {
        mark_timeline("epoch");
        watch_.look(process_);
    }
    EXPECT_EQ(watch_.observation().profiles(), 0U);
}

TEST_F(WatchTest, IsCompleteWithTheIterationsThatItWasToObserve) {
    for (int i = 0; i < 4; ++i) {
        end_iteration();
        EXPECT_FALSE(watch_.is_complete());
    }
    end_iteration();
    EXPECT_TRUE(watch_.is_complete());
    end_iteration();
    EXPECT_EQ(watch_.observation().iterations(), 3U);
}

}  // namespace
}  // namespace tensorpool::command::leaks
