#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <tensorpool/tensorpool_models.h>

#include "support/temporary_path.hpp"

namespace {

constexpr tensorpool_file_part all = {0, UINT64_MAX};

struct Closer {
    void operator()(tensorpool_mapped_file* file) const { tensorpool_mapped_file_close(file); }
};
using OwnedFile = std::unique_ptr<tensorpool_mapped_file, Closer>;

bool last_error_has(const char* text) {
    return std::string(tensorpool_last_error()).find(text) != std::string::npos;
}

class CMappedFile : public ::testing::Test {
protected:
    CMappedFile() : path_(".bytes") {
        std::ofstream(path_.path(), std::ios::binary) << std::string(8192, 'a') << "end";
    }
    OwnedFile open(tensorpool_file_part part = all) const {
        return OwnedFile(tensorpool_mapped_file_open(path_.text().c_str(), part, 1));
    }
    tensorpool::testing::TemporaryPath path_;
};

TEST_F(CMappedFile, MapsAPart) {
    const OwnedFile file = open({8192, 3});
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(tensorpool_mapped_file_path(file.get()), path_.text());
    EXPECT_EQ(tensorpool_mapped_file_part(file.get()).offset, 8192U);
    EXPECT_EQ(tensorpool_mapped_file_part(file.get()).bytes, 3U);
    EXPECT_EQ(tensorpool_mapped_file_size(file.get()), 8195U);
    const auto* const bytes =
        static_cast<const char*>(tensorpool_mapped_file_bytes(file.get(), {8192, 3}));
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(std::string(bytes, 3), "end");
    EXPECT_EQ(tensorpool_mapped_file_bytes(file.get(), {0, 3}), nullptr);
    EXPECT_STRNE(tensorpool_last_error(), "");
}

TEST_F(CMappedFile, PartBeyondTheEndIsAnInvalidArgument) {
    EXPECT_EQ(open({8195, 1}), nullptr);
    EXPECT_TRUE(last_error_has(path_.text().c_str())) << tensorpool_last_error();
}

TEST_F(CMappedFile, InvalidArgumentsNameTheParameter) {
    EXPECT_EQ(tensorpool_mapped_file_open(nullptr, all, 1), nullptr);
    EXPECT_TRUE(last_error_has("path is NULL")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_mapped_file_open(path_.text().c_str(), all, 2), nullptr);
    EXPECT_TRUE(last_error_has("shared is 2")) << tensorpool_last_error();
    const OwnedFile file = open();
    EXPECT_EQ(tensorpool_mapped_file_prefetch(file.get(), 2, all), tensorpool_advised_invalid);
    EXPECT_TRUE(last_error_has("when is 2")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_mapped_file_advise(file.get(), -1, all), tensorpool_advised_invalid);
    EXPECT_EQ(tensorpool_mapped_file_place(file.get(), 3, 0), tensorpool_advised_invalid);
    EXPECT_EQ(tensorpool_mapped_file_copy(file.get(), 0, nullptr, 1), tensorpool_invalid_argument);
}

TEST_F(CMappedFile, AdviceIsThatOfTheCppInterface) {
    const OwnedFile file = open();
    auto* const same = reinterpret_cast<tensorpool::MappedFile*>(file.get());
    EXPECT_EQ(tensorpool_mapped_file_prefetch(file.get(), tensorpool_prefetch_now, all),
              static_cast<int>(same->prefetch(tensorpool::Prefetch::now)));
    EXPECT_EQ(tensorpool_mapped_file_advise(file.get(), tensorpool_access_random, all),
              static_cast<int>(same->advise(tensorpool::AccessPattern::random)));
    EXPECT_EQ(tensorpool_mapped_file_prefer_huge_pages(file.get(), all),
              static_cast<int>(same->prefer_huge_pages()));
    EXPECT_EQ(tensorpool_mapped_file_place(file.get(), tensorpool_numa_interleave_pages, 0),
              static_cast<int>(same->place(tensorpool::NumaPlacement::interleave)));
    EXPECT_EQ(tensorpool_mapped_file_resident_bytes(file.get(), all), same->resident_bytes());
    EXPECT_EQ(tensorpool_mapped_file_drop_pages(file.get(), all),
              static_cast<int>(same->drop_pages()));
    EXPECT_EQ(tensorpool_mapped_file_drop_from_cache(file.get(), all),
              static_cast<int>(same->drop_from_cache()));
}

TEST_F(CMappedFile, CopyReportsAFileThatWasCutShort) {
    const OwnedFile file = open();
    std::filesystem::resize_file(path_.path(), 100);
    char copied[10];
    EXPECT_EQ(tensorpool_mapped_file_copy(file.get(), 95, copied, 10), tensorpool_other_failure);
    EXPECT_TRUE(last_error_has("cut short")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_mapped_file_copy(file.get(), 90, copied, 10), tensorpool_ok);
}

TEST_F(CMappedFile, UnmapsPages) {
    const OwnedFile file = open();
    std::uint64_t unmapped = 0;
    EXPECT_EQ(tensorpool_mapped_file_unmap(file.get(), all, &unmapped), tensorpool_ok);
    EXPECT_GT(unmapped, 0U);
    EXPECT_EQ(tensorpool_mapped_file_unmap(file.get(), all, nullptr), tensorpool_ok);
    EXPECT_EQ(tensorpool_mapped_file_unmap(nullptr, all, nullptr), tensorpool_invalid_argument);
}

}  // namespace
