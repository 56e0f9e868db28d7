// Simulates kernels before 5.14, which do not support MADV_POPULATE_READ: pages are read instead.

#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "model_files/test_file.hpp"
#include "platform/platform.hpp"

namespace {

bool kernel_is_old = false;

}  // namespace

// The linker replaces the system's function by this one.
extern "C" int __real_madvise(void* address, std::size_t bytes, int advice);
extern "C" int __wrap_madvise(void* address, std::size_t bytes, int advice) {
    constexpr int populate_read = 22;
    if (!kernel_is_old || advice != populate_read) return __real_madvise(address, bytes, advice);
    errno = EINVAL;
    return -1;
}

namespace tensorpool {
namespace {

using files::File;
using files::numbered_text;

const std::size_t page = platform::page_bytes();

class OldKernel : public ::testing::Test {
protected:
    void SetUp() override { kernel_is_old = true; }
    void TearDown() override { kernel_is_old = false; }
};

TEST_F(OldKernel, PrefetchesByReading) {
    const File file(numbered_text(64 * page + 5));
    const MappedFile mapped = MappedFile::open(file.path());
    const int number = open(file.path().c_str(), O_RDONLY);
    fsync(number);
    close(number);
    mapped.drop_from_cache();
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {3 * page + 1, 40 * page}), Advised::done);
    EXPECT_EQ(mapped.resident_bytes({3 * page, 40 * page}), 40 * page);
    EXPECT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    EXPECT_EQ(mapped.resident_bytes(), 65 * page);
}

TEST_F(OldKernel, RefusesToPrefetchAShortenedFile) {
    const File file(numbered_text(64 * page));
    const MappedFile mapped = MappedFile::open(file.path(), {.part = {page + 3, 40 * page}});
    std::filesystem::resize_file(file.path(), 30 * page);
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {0, 30 * page}), Advised::done);
    EXPECT_EQ(mapped.prefetch(Prefetch::now), Advised::refused);
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {50 * page}), Advised::done);  // outside the mapping
}

}  // namespace
}  // namespace tensorpool
