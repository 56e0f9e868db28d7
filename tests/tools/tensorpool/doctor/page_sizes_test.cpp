#include "doctor/doctor.hpp"

#include <gtest/gtest.h>

#include "support/file_tree.hpp"

namespace tensorpool::command {
namespace {

constexpr std::uint64_t kib = 1024;

class PageSizes : public ::testing::Test {
protected:
    PageSizes() { set_common("always [madvise] never"); }
    void set_common(const std::string& line) { tree.write("/enabled", line + "\n"); }
    void set(const std::string& size, const std::string& line) {
        tree.write("/hugepages-" + size + "/enabled", line + "\n");
    }
    std::vector<PageSizeSetting> sizes() { return read_page_sizes(tree.root()); }

    testing::FileTree tree;
};

TEST_F(PageSizes, AreReadInOrderOfSize) {
    set("2048kB", "always [inherit] madvise never");
    set("64kB", "always inherit [madvise] never");
    set("128kB", "always inherit madvise [never]");
    const std::vector<PageSizeSetting> found = sizes();
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].bytes, 64 * kib);
    EXPECT_EQ(found[0].word, "madvise");
    EXPECT_TRUE(found[0].given);
    EXPECT_EQ(found[1].bytes, 128 * kib);
    EXPECT_EQ(found[1].word, "never");
    EXPECT_FALSE(found[1].given);
    EXPECT_EQ(found[2].bytes, 2048 * kib);
    EXPECT_EQ(found[2].word, "inherit");
    EXPECT_TRUE(found[2].given);
}

TEST_F(PageSizes, InheritTheCommonSetting) {
    set("64kB", "always [inherit] madvise never");
    EXPECT_TRUE(sizes()[0].given);
    set_common("always madvise [never]");
    EXPECT_FALSE(sizes()[0].given);
    set("64kB", "[always] inherit madvise never");
    EXPECT_TRUE(sizes()[0].given);
}

TEST_F(PageSizes, OtherFilesAreSkipped) {
    tree.write("/khugepaged/enabled", "[always]\n");
    tree.write("/hugepages-32kB/shmem_enabled", "always [never]\n");
    set("16kB", "nonsense");
    EXPECT_TRUE(sizes().empty());
}

TEST_F(PageSizes, AreEmptyOnOtherKernels) {
    EXPECT_TRUE(sizes().empty());
    EXPECT_TRUE(read_page_sizes(tree.path("/missing")).empty());
    EXPECT_EQ(chosen_word(tree.path("/missing")), "");
}

TEST_F(PageSizes, OnlyEnabledSizesAreMeasured) {
    set("64kB", "always inherit [madvise] never");
    set("128kB", "always inherit madvise [never]");
    std::vector<PageSizeSetting> found = sizes();
    measure_page_sizes(found);
    EXPECT_GT(found[0].fault_ns, 0);
    EXPECT_EQ(found[1].fault_ns, 0);
}

}  // namespace
}  // namespace tensorpool::command
