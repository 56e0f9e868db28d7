#include <tensorpool/errors.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <string>
#include <type_traits>

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(AllocationError, NamesOwnerSizeAndLimit) {
    const AllocationError error("images", 3 * mib, 10 * mib, 12 * mib, "max_capacity", 16 * mib);
    EXPECT_STREQ(error.what(),
                 "tensorpool: images: allocate: 3145728 B (3 MiB) requested with 10 MiB in use and "
                 "12 MiB committed; limit met: max_capacity (16 MiB)");
    EXPECT_EQ(error.asked(), 3 * mib);
    EXPECT_EQ(error.in_use(), 10 * mib);
}

AllocationFailure full() {
    return {.asked = 3 * mib,
            .in_use = 10 * mib,
            .capacity = 15 * mib,
            .limit = "max_capacity",
            .limit_bytes = 16 * mib,
            .needed_limit = 18 * mib,
            .knows_free = true,
            .free_pages = 2 * mib,
            .largest_free = mib,
            .between_blocks = 2 * mib,
            .with_threads = mib,
            .missing = 2 * mib};
}

TEST(AllocationError, ReportsFreeMemoryAndRemedy) {
    const AllocationError error("images", full());
    EXPECT_STREQ(error.what(),
                 "tensorpool: images: allocate: 3145728 B (3 MiB) requested with 10 MiB in use and "
                 "15 MiB committed; limit met: max_capacity (16 MiB)\n"
                 "  free: 2 MiB in whole pages, the longest run 1 MiB; 2 MiB between blocks in "
                 "use; 1 MiB kept by other threads\n"
                 "  fragmentation is the only cause: enough is free, but in pieces\n"
                 "  it would fit if max_capacity were at least 18874368 B (18 MiB), or after "
                 "2097152 B (2 MiB) in use were freed in whole pages");
    EXPECT_EQ(error.capacity(), 15 * mib);
    EXPECT_EQ(error.free_in_pieces(), 3 * mib);
    EXPECT_EQ(error.largest_free(), mib);
    EXPECT_EQ(error.missing(), 2 * mib);
    EXPECT_TRUE(error.is_fragmentation());
}

TEST(AllocationError, ReportsShareOfFragmentation) {
    AllocationFailure failure = full();
    failure.missing = 8 * mib;
    const AllocationError error("images", failure);
    EXPECT_FALSE(error.is_fragmentation());
    EXPECT_NE(std::string(error.what())
                  .find("\n  fragmentation costs 3 MiB: without it 3 MiB would still be missing\n"),
              std::string::npos)
        << error.what();
}

TEST(AllocationError, FreeingMoreThanIsInUseIsNoRemedy) {
    AllocationFailure failure = full();
    failure.missing = 11 * mib;
    const AllocationError error("images", failure);
    EXPECT_EQ(std::string(error.what()).find("were freed"), std::string::npos) << error.what();
}

TEST(AllocationError, ShortRunsOfFreePagesCountAsFragmentation) {
    AllocationFailure failure = full();
    failure.missing = failure.needed_limit = 0;
    failure.limit = "address space";
    failure.free_pages = 4 * mib;
    failure.advice = "fewer pools";
    const AllocationError error("images", failure);
    EXPECT_TRUE(error.is_fragmentation());
    EXPECT_TRUE(std::string(error.what()).ends_with("but in pieces\n  fewer pools"))
        << error.what();
    failure.largest_free = 3 * mib;
    EXPECT_FALSE(AllocationError("images", failure).is_fragmentation()) << "a run is long enough";
}

TEST(AllocationError, LongestTextFits) {
    const std::string long_text(500, 'x');
    constexpr std::size_t largest = SIZE_MAX;
    const AllocationError error("images", {.asked = largest,
                                           .in_use = largest,
                                           .capacity = largest,
                                           .limit = long_text.c_str(),
                                           .limit_bytes = largest,
                                           .needed_limit = largest,
                                           .knows_free = true,
                                           .free_pages = largest / 4,
                                           .largest_free = largest,
                                           .between_blocks = largest / 4,
                                           .with_threads = largest / 4,
                                           .missing = largest,
                                           .advice = long_text.c_str()});
    EXPECT_TRUE(std::string(error.what()).ends_with("\n  " + std::string(160, 'x')))
        << error.what();
}

TEST(AllocationError, IsNothrowCopyableBadAlloc) {
    static_assert(std::is_base_of_v<std::bad_alloc, AllocationError>);
    static_assert(std::is_nothrow_copy_constructible_v<AllocationError>);
    const AllocationError error("p", 1, 2, 3, "l", 4);
    const AllocationError copy = error;
    EXPECT_STREQ(copy.what(), error.what());
    EXPECT_NE(copy.what(), error.what()) << "the text is stored in the object";
}

TEST(AllocationError, LongNamesAreTruncatedAndFollowingValuesKept) {
    const std::string name(500, 'n');
    const std::string limit(500, 'l');
    constexpr std::size_t largest = SIZE_MAX;
    const AllocationError error(name.c_str(), largest, largest, largest, limit.c_str(), largest);
    const std::string text = error.what();
    EXPECT_NE(text.find(std::string(47, 'n') + ":"), std::string::npos);
    EXPECT_EQ(text.find(std::string(48, 'n')), std::string::npos);
    EXPECT_TRUE(text.ends_with("lll (15.9 EiB)")) << text;
}

}  // namespace
}  // namespace tensorpool
