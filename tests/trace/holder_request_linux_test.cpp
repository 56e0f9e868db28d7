#include <tensorpool/holder_request.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/trim_request.hpp>

#include "platform/process/processes.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::uint64_t own_number() {
    return static_cast<std::uint64_t>(::getpid());
}

unsigned calls = 0;
std::uint64_t passed_on = 0;

void count_request(std::uint64_t request) noexcept {
    ++calls;
    passed_on = request;
}

/// Has a handler that only counts, so that the test answers.
class HolderRequests : public ::testing::Test {
protected:
    HolderRequests() {
        calls = 0;
        passed_on = 0;
        set_holder_handler(count_request);
        take_slow_path();
    }
    ~HolderRequests() override { set_holder_handler(nullptr); }

    void take_slow_path() { pool_.deallocate(pool_.allocate(mib), mib); }
    static std::size_t open_answers() {
        return platform::memory_files_of(own_number(), "tensorpool-holders").files.size();
    }

private:
    MemoryPool pool_;
};

TEST_F(HolderRequests, ArePassedOnAtTheNextSlowPathAndAnsweredLater) {
    const HolderRequest request = HolderRequest::ask(own_number());
    EXPECT_EQ(calls, 0U);
    take_slow_path();
    EXPECT_EQ(calls, 1U);
    EXPECT_EQ(request.answer(), std::nullopt);
    answer_holders(passed_on, "a list of 17 arrays");
    EXPECT_EQ(request.answer(), "a list of 17 arrays");
    EXPECT_EQ(request.answer(), "a list of 17 arrays");
}

TEST_F(HolderRequests, AreAnsweredTogether) {
    const HolderRequest first = HolderRequest::ask(own_number());
    const HolderRequest second = HolderRequest::ask(own_number());
    take_slow_path();
    EXPECT_EQ(calls, 1U);
    answer_holders(passed_on, "both");
    EXPECT_EQ(first.answer(), "both");
    EXPECT_EQ(second.answer(), "both");
}

TEST_F(HolderRequests, ArePassedOnOnce) {
    const HolderRequest request = HolderRequest::ask(own_number());
    take_slow_path();
    (void)TrimRequest::ask(own_number());
    take_slow_path();
    EXPECT_EQ(calls, 1U);
    EXPECT_EQ(request.answer(), std::nullopt);
}

TEST_F(HolderRequests, KeepTheLastAnswerOnly) {
    const HolderRequest first = HolderRequest::ask(own_number());
    take_slow_path();
    const std::uint64_t number = passed_on;
    const HolderRequest second = HolderRequest::ask(own_number());
    take_slow_path();
    answer_holders(passed_on, "second");
    answer_holders(number, "first, which took longer");
    EXPECT_EQ(first.answer(), "second");
    EXPECT_EQ(second.answer(), "second");
    EXPECT_EQ(open_answers(), 1U);
}

TEST_F(HolderRequests, AreNotAnsweredByOtherNumbers) {
    answer_holders(UINT64_MAX, "of no request");
    answer_holders(0, "of no request");
    const HolderRequest request = HolderRequest::ask(own_number());
    answer_holders(passed_on + 1, "of a request that was not passed on");
    EXPECT_EQ(request.answer(), std::nullopt);
}

TEST_F(HolderRequests, AreAnsweredWithAnEmptyTextWithoutAHandler) {
    set_holder_handler(nullptr);
    const HolderRequest request = HolderRequest::ask(own_number());
    take_slow_path();
    EXPECT_EQ(calls, 0U);
    EXPECT_EQ(request.answer(), "");
}

TEST_F(HolderRequests, CutLongAnswers) {
    const HolderRequest request = HolderRequest::ask(own_number());
    take_slow_path();
    answer_holders(passed_on, std::string(3 * mib, 'a'));
    EXPECT_EQ(request.answer(), std::string(mib, 'a'));
}

TEST_F(HolderRequests, HaveASealedAnswer) {
    (void)HolderRequest::ask(own_number());
    take_slow_path();
    answer_holders(passed_on, "text");
    const auto held = platform::memory_files_of(own_number(), "tensorpool-holders");
    ASSERT_EQ(held.files.size(), 1U);
    EXPECT_TRUE(held.files.front().file.is_sealed());
    const auto descriptor = static_cast<int>(held.files.front().descriptor);
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
    EXPECT_LT(::pwrite(descriptor, "x", 1, 0), 0);
}

// The descriptor of the answer is closed, and the number of a request to the parent is none of the
// child's.
TEST_F(HolderRequests, ChildOfAForkAnswersItsOwn) {
    const HolderRequest answered = HolderRequest::ask(own_number());
    take_slow_path();
    answer_holders(passed_on, "of the parent");
    const HolderRequest request = HolderRequest::ask(own_number());
    take_slow_path();
    EXPECT_TRUE(testing::holds_in_child([&] {
        const bool is_closed = open_answers() == 0;
        take_slow_path();
        const std::uint64_t number = passed_on;
        answer_holders(number, "to the parent's request");
        const HolderRequest own = HolderRequest::ask(own_number());
        const bool is_open = !own.answer();
        take_slow_path();
        answer_holders(passed_on, "of the child");
        return is_closed && is_open && passed_on < number && own.answer() == "of the child";
    }));
    EXPECT_EQ(answered.answer(), "of the parent");
    EXPECT_EQ(request.answer(), std::nullopt);
}

TEST(HolderRequestWithoutAPool, IsRefused) {
    try {
        (void)HolderRequest::ask(own_number());
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::no_segment);
        EXPECT_NE(std::string(error.what()).find("it accepts no request to name holders"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace tensorpool
