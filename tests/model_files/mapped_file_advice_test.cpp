#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <string>

#include "model_files/test_file.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using files::File;
using files::numbered_text;
using files::text_of;

const std::size_t page = platform::page_bytes();

TEST(MappedFileAdvice, HasATextForEachOutcome) {
    EXPECT_STREQ(to_string(Advised::done), "done");
    EXPECT_STREQ(to_string(Advised::one_node), "one node");
    EXPECT_STREQ(to_string(Advised::unsupported), "unsupported");
    EXPECT_STREQ(to_string(Advised::refused), "refused");
    EXPECT_STREQ(to_string(static_cast<Advised>(99)), "unknown");
}

TEST(MappedFileAdvice, ChangesNoByte) {
    const std::string content = numbered_text(5 * page + 9);
    const File file(content);
    MappedFile mapped = MappedFile::open(file.path());
    for (const auto pattern :
         {AccessPattern::sequential, AccessPattern::random, AccessPattern::normal}) {
        mapped.advise(pattern, {page + 1, page});
        EXPECT_EQ(text_of(mapped.bytes()), content);
    }
    mapped.prefetch(Prefetch::ahead, {page - 1, 2});
    mapped.prefetch(Prefetch::now, {3 * page, 1});
    mapped.prefer_huge_pages();
    mapped.place(NumaPlacement::interleave);
    mapped.drop_pages({1, 3 * page});
    mapped.drop_from_cache();
    EXPECT_EQ(text_of(mapped.bytes()), content);
}

TEST(MappedFileAdvice, AppliesToTheMappedPart) {
    const File file(numbered_text(5 * page));
    MappedFile mapped = MappedFile::open(file.path(), {.part = {page, 2 * page}});
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {4 * page}), Advised::done);
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {0, 5 * page}), Advised::done);
    EXPECT_EQ(mapped.resident_bytes({3 * page}), 0U);
    EXPECT_EQ(mapped.resident_bytes({UINT64_MAX, 7}), 0U);
    EXPECT_EQ(mapped.resident_bytes({0, page}), 0U);
    EXPECT_EQ(mapped.resident_bytes({0, page + 1}), page);
    EXPECT_EQ(mapped.resident_bytes(), 2 * page);
}

TEST(MappedFileAdvice, SkipsUnmappedPages) {
    const File file(numbered_text(5 * page));
    MappedFile mapped = MappedFile::open(file.path());
    mapped.unmap({page, page});
    mapped.unmap({3 * page, page});
    EXPECT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    EXPECT_EQ(mapped.resident_bytes(), 3 * page);
    EXPECT_EQ(mapped.resident_bytes({page, page}), 0U);
    EXPECT_EQ(mapped.drop_pages(), Advised::done);
}

TEST(MappedFileAdvice, PlacementReportsASingleNode) {
    const File file(numbered_text(page));
    MappedFile mapped = MappedFile::open(file.path());
    const unsigned nodes = platform::numa_node_count();
    const Advised expected = nodes == 1 ? Advised::one_node : Advised::done;
    EXPECT_EQ(mapped.place(NumaPlacement::interleave), expected);
    EXPECT_EQ(mapped.place(NumaPlacement::bind, nodes - 1), expected);
    EXPECT_EQ(mapped.place(NumaPlacement::first_touch), expected);
    EXPECT_EQ(mapped.place(NumaPlacement::bind, nodes), Advised::refused);
}

TEST(MappedFileAdvice, HugePagesAreUnsupportedForASmallFile) {
    const File file(numbered_text(page));
    EXPECT_EQ(MappedFile::open(file.path()).prefer_huge_pages(), Advised::unsupported);
}

}  // namespace
}  // namespace tensorpool
