#include <tensorpool/errors.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <string>
#include <type_traits>

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(AllocationError, TellsWhoHowMuchAndWhichLimit) {
    const AllocationError error("images", 3 * mib, 10 * mib, 12 * mib, "max_capacity", 16 * mib);
    EXPECT_STREQ(error.what(),
                 "tensorpool: images: allocate: 3145728 B (3 MiB) asked with 10 MiB in use and "
                 "12 MiB committed; limit met: max_capacity (16 MiB)");
    EXPECT_EQ(error.asked(), 3 * mib);
    EXPECT_EQ(error.in_use(), 10 * mib);
}

TEST(AllocationError, IsABadAllocThatCanBeCopiedWithoutThrowing) {
    static_assert(std::is_base_of_v<std::bad_alloc, AllocationError>);
    static_assert(std::is_nothrow_copy_constructible_v<AllocationError>);
    const AllocationError error("p", 1, 2, 3, "l", 4);
    const AllocationError copy = error;
    EXPECT_STREQ(copy.what(), error.what());
    EXPECT_NE(copy.what(), error.what()) << "the text lies in the object";
}

TEST(AllocationError, LongNamesAreCutAndTheFiguresAfterThemStay) {
    const std::string name(500, 'n');
    const std::string limit(500, 'l');
    constexpr std::size_t most = SIZE_MAX;
    const AllocationError error(name.c_str(), most, most, most, limit.c_str(), most);
    const std::string text = error.what();
    EXPECT_NE(text.find(std::string(47, 'n') + ":"), std::string::npos);
    EXPECT_EQ(text.find(std::string(48, 'n')), std::string::npos);
    EXPECT_TRUE(text.ends_with("lll (15.9 EiB)")) << text;
}

}  // namespace
}  // namespace tensorpool
