#include "interpose/next_allocator.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "platform/process/next_function_linux.hpp"

namespace tensorpool {
namespace {

// An allocator that only counts, and a loader that allocates during the lookup of it. ctest runs
// each test in a process of its own.

int frees = 0;
bool loader_allocates = false;
void* of_loader = nullptr;
char the_block[100];

int refusals = 0;
int trims = 0;
bool pools_have_memory = true;

void* fake_malloc(std::size_t) noexcept {
    return refusals != 0 && refusals-- != 0 ? nullptr : the_block;
}
void* fake_calloc(std::size_t, std::size_t) noexcept {
    return the_block;
}
void* fake_realloc(void*, std::size_t) noexcept {
    return the_block;
}
void fake_free(void*) noexcept {
    ++frees;
}
int fake_posix_memalign(void** to, std::size_t, std::size_t) noexcept {
    *to = the_block;
    return 0;
}
std::size_t fake_usable_size(void*) noexcept {
    return 77;
}

void allocate_as_loader() {
    if (of_loader == nullptr) {
        of_loader = interpose::next_calloc(4, 25);
        std::strcpy(static_cast<char*>(of_loader), "of the loader");
    }
    void* aligned = nullptr;
    EXPECT_EQ(interpose::next_posix_memalign(&aligned, 64, 10), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 64, 0U);
    EXPECT_EQ(interpose::next_posix_memalign(&aligned, 4096, 10), ENOMEM);
    void* const grown = interpose::next_realloc(interpose::next_malloc(10), 20);
    EXPECT_EQ(interpose::next_usable_size(grown), 20U);
    interpose::next_free(grown);
}

}  // namespace

void* platform::next_function(const char* name) noexcept {
    if (loader_allocates) allocate_as_loader();
    const std::string_view wanted = name;
    if (wanted == "malloc") return reinterpret_cast<void*>(fake_malloc);
    if (wanted == "calloc") return reinterpret_cast<void*>(fake_calloc);
    if (wanted == "realloc") return reinterpret_cast<void*>(fake_realloc);
    if (wanted == "free") return reinterpret_cast<void*>(fake_free);
    if (wanted == "posix_memalign") return reinterpret_cast<void*>(fake_posix_memalign);
    return wanted == "malloc_usable_size" ? reinterpret_cast<void*>(fake_usable_size) : nullptr;
}

bool interpose::gave_memory_back() noexcept {
    ++trims;
    return pools_have_memory;
}

namespace {

void expect_found() {
    EXPECT_EQ(interpose::next_malloc(1), the_block);
    EXPECT_EQ(interpose::next_calloc(1, 1), the_block);
    EXPECT_EQ(interpose::next_realloc(the_block, 1), the_block);
    EXPECT_EQ(interpose::next_usable_size(the_block), 77U);
    void* aligned = nullptr;
    EXPECT_EQ(interpose::next_posix_memalign(&aligned, 64, 1), 0);
    EXPECT_EQ(aligned, the_block);
    interpose::next_free(the_block);
    EXPECT_EQ(frees, 1);
}

TEST(NextAllocator, IsFoundAtTheFirstCall) {
    expect_found();
    EXPECT_FALSE(interpose::bootstrap_buffer_is_used());
    EXPECT_EQ(interpose::next_free.get(), fake_free) << "frees do not check the buffer";
}

TEST(NextAllocator, IsFoundWithALoaderThatAllocates) {
    loader_allocates = true;
    expect_found();
    ASSERT_TRUE(interpose::is_in_bootstrap_buffer(of_loader));
    EXPECT_EQ(interpose::next_usable_size(of_loader), 100U);
    EXPECT_EQ(interpose::next_realloc(of_loader, 50), the_block);
    EXPECT_STREQ(the_block, "of the loader");
    interpose::next_free(of_loader);
    EXPECT_EQ(frees, 1) << "blocks in the buffer are never freed";
}

TEST(NextAllocator, EachFunctionMayComeFirst) {
    interpose::next_free(nullptr);
    EXPECT_EQ(interpose::next_realloc(nullptr, 1), the_block);
}

TEST(NextAllocator, IsAskedAgainAfterPoolsGaveMemoryBack) {
    EXPECT_EQ(interpose::next_malloc(1), the_block);
    EXPECT_EQ(trims, 0);
    refusals = 1;
    EXPECT_EQ(interpose::next_malloc(1), the_block);
    EXPECT_EQ(trims, 1);
    refusals = 2;
    EXPECT_EQ(interpose::next_malloc(1), nullptr) << "it is asked twice at most";
    refusals = 0;
    refusals = 1;
    pools_have_memory = false;
    EXPECT_EQ(interpose::next_malloc(1), nullptr) << "no pool has free memory";
    refusals = 1;
    EXPECT_EQ(interpose::next_malloc(0), nullptr);
    EXPECT_EQ(trims, 3) << "nothing is wanted";
}

TEST(BootstrapBuffer, ServesZeroedBlocksUntilFull) {
    std::size_t blocks = 0;
    while (void* const block = interpose::take_from_bootstrap_buffer(1000, 16)) {
        const char* const bytes = static_cast<char*>(block);
        for (int i = 0; i < 1000; ++i) ASSERT_EQ(bytes[i], 0);
        std::memset(block, 1, 1000);
        EXPECT_EQ(interpose::bytes_in_bootstrap_buffer(block), 1000U);
        ++blocks;
    }
    EXPECT_EQ(blocks, 15U);
    EXPECT_EQ(interpose::take_from_bootstrap_buffer(SIZE_MAX, 1), nullptr);
    EXPECT_EQ(interpose::take_from_bootstrap_buffer(1, 128), nullptr);
    EXPECT_FALSE(interpose::is_in_bootstrap_buffer(&blocks));
}

}  // namespace
}  // namespace tensorpool
