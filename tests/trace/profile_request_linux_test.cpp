#include <tensorpool/profile_request.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <string>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/trim_request.hpp>

#include "support/child_process.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::uint64_t own_number() {
    return static_cast<std::uint64_t>(::getpid());
}

class ProfileRequest : public ::testing::Test {
protected:
    ProfileRequest() { take_slow_path(); }
    ~ProfileRequest() override { set_profile_interval(before_); }

    void take_slow_path() { pool_.deallocate(pool_.allocate(mib), mib); }

    MemoryPool pool_;

private:
    const std::size_t before_ = profile_interval();
};

TEST_F(ProfileRequest, ChangesTheIntervalAtTheNextSlowPath) {
    set_profile_interval(512 << 10);
    request_profile_interval(own_number(), 4096);
    EXPECT_EQ(profile_interval(), std::size_t{512} << 10);
    take_slow_path();
    EXPECT_EQ(profile_interval(), 4096U);
    EXPECT_EQ(StatisticsReader::attach(own_number()).heap_profile().interval, 4096U);
}

TEST_F(ProfileRequest, LastOfSeveralStands) {
    request_profile_interval(own_number(), 4096);
    request_profile_interval(own_number(), 8192);
    take_slow_path();
    EXPECT_EQ(profile_interval(), 8192U);
}

TEST_F(ProfileRequest, StopsSampling) {
    set_profile_interval(4096);
    request_profile_interval(own_number(), 0);
    take_slow_path();
    EXPECT_EQ(profile_interval(), 0U);
}

TEST_F(ProfileRequest, LargestIntervalIsOneTebibyte) {
    request_profile_interval(own_number(), std::numeric_limits<std::size_t>::max());
    take_slow_path();
    EXPECT_EQ(profile_interval(), std::size_t{1} << 40);
}

TEST_F(ProfileRequest, IsCarriedOutOnce) {
    request_profile_interval(own_number(), 4096);
    take_slow_path();
    set_profile_interval(8192);
    (void)TrimRequest::ask(own_number());
    take_slow_path();
    EXPECT_EQ(profile_interval(), 8192U);
}

TEST_F(ProfileRequest, ChildOfAForkKeepsItsInterval) {
    set_profile_interval(8192);
    request_profile_interval(own_number(), 4096);
    EXPECT_TRUE(testing::holds_in_child([&] {
        take_slow_path();
        return profile_interval() == 8192;
    }));
}

TEST(ProfileRequestWithoutAPool, IsRefused) {
    try {
        request_profile_interval(own_number(), 4096);
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::no_segment);
        EXPECT_NE(std::string(error.what()).find("it accepts no request to sample allocations"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace tensorpool
