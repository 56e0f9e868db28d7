// Mapped files and locked memory for C. A tensorpool_mapped_file is a MappedFile, a
// tensorpool_memory_lock a MemoryLock.

#include <tensorpool/mapped_file.hpp>
#include <tensorpool/memory_lock.hpp>

#include <utility>

#include <tensorpool/tensorpool_models.h>

#include "adaptors/c_calls.hpp"

namespace tensorpool::adaptors {
namespace {

static_assert(static_cast<int>(Advised::done) == tensorpool_advised_done);
static_assert(static_cast<int>(Advised::one_node) == tensorpool_advised_one_node);
static_assert(static_cast<int>(Advised::unsupported) == tensorpool_advised_unsupported);
static_assert(static_cast<int>(Advised::refused) == tensorpool_advised_refused);
static_assert(static_cast<int>(Prefetch::ahead) == tensorpool_prefetch_ahead);
static_assert(static_cast<int>(Prefetch::now) == tensorpool_prefetch_now);
static_assert(static_cast<int>(AccessPattern::normal) == tensorpool_access_normal);
static_assert(static_cast<int>(AccessPattern::sequential) == tensorpool_access_sequential);
static_assert(static_cast<int>(AccessPattern::random) == tensorpool_access_random);
static_assert(static_cast<int>(NumaPlacement::first_touch) == tensorpool_numa_first_touch);
static_assert(static_cast<int>(NumaPlacement::interleave) == tensorpool_numa_interleave_pages);
static_assert(static_cast<int>(NumaPlacement::bind) == tensorpool_numa_bind);
static_assert(FilePart::to_the_end == UINT64_MAX);

auto& to_file(auto* file) {
    return object_of<MappedFile>(
        file, "file", "one from tensorpool_mapped_file_open or tensorpool_model_file_mapping");
}

FilePart to_part(tensorpool_file_part part) noexcept {
    return {part.offset, part.bytes};
}

template <class Call>
tensorpool_advised advised(Call call, const char* function = __builtin_FUNCTION()) noexcept {
    tensorpool_advised result = tensorpool_advised_invalid;
    guarded([&] { result = static_cast<tensorpool_advised>(call()); }, function);
    return result;
}

static_assert(static_cast<int>(LockLimit::none) == tensorpool_lock_limit_none);
static_assert(static_cast<int>(LockLimit::soft) == tensorpool_lock_limit_soft);
static_assert(static_cast<int>(LockLimit::hard) == tensorpool_lock_limit_hard);
static_assert(static_cast<int>(LockLimit::machine) == tensorpool_lock_limit_machine);
static_assert(static_cast<int>(LockLimit::container) == tensorpool_lock_limit_container);
static_assert(static_cast<int>(LockLimit::pages) == tensorpool_lock_limit_pages);
static_assert(static_cast<int>(LockLimit::system) == tensorpool_lock_limit_system);

constexpr const char* struct_name = "tensorpool_lock_outcome";
constexpr std::size_t first_version_bytes = offsetof(tensorpool_lock_outcome, available_bytes) +
                                            sizeof(tensorpool_lock_outcome::available_bytes);

auto& to_lock(auto* lock) {
    return object_of<MemoryLock>(lock, "lock", "one from tensorpool_memory_lock_create");
}

tensorpool_lock_outcome to_c(const LockOutcome& from) {
    return {.struct_bytes = sizeof(tensorpool_lock_outcome),
            .limit = static_cast<std::int32_t>(from.limit),
            .error = from.error,
            .asked_bytes = from.asked_bytes,
            .locked_bytes = from.locked_bytes,
            .limit_bytes = from.limit_bytes,
            .hard_limit_bytes = from.hard_limit_bytes,
            .needed_bytes = from.needed_bytes,
            .available_bytes = from.available_bytes};
}

/// A refusal of the system, which the C++ interface does not throw.
struct LockRefused : std::bad_alloc {
    explicit LockRefused(std::string why) : text(std::move(why)) {}
    const char* what() const noexcept override { return text.c_str(); }
    std::string text;
};

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::MappedFile;
using tensorpool::MemoryLock;

tensorpool_mapped_file* tensorpool_mapped_file_open(const char* path, tensorpool_file_part part,
                                                    int32_t shared) {
    using tensorpool::Shared;
    return reinterpret_cast<tensorpool_mapped_file*>(or_zero([&] {
        const Shared shows = to_enumeration("shared", shared, 1) != 0 ? Shared::yes : Shared::no;
        required(path, "path", "the name of a file");
        return new MappedFile(MappedFile::open(path, {to_part(part), shows}));
    }));
}

void tensorpool_mapped_file_close(tensorpool_mapped_file* file) {
    delete reinterpret_cast<MappedFile*>(file);
}

const char* tensorpool_mapped_file_path(const tensorpool_mapped_file* file) {
    return or_zero([&] { return to_file(file).path().c_str(); });
}

tensorpool_file_part tensorpool_mapped_file_part(const tensorpool_mapped_file* file) {
    return or_zero([&] {
        const tensorpool::FilePart part = to_file(file).part();
        return tensorpool_file_part{part.offset, part.bytes};
    });
}

const void* tensorpool_mapped_file_bytes(const tensorpool_mapped_file* file,
                                         tensorpool_file_part part) {
    return or_zero([&]() -> const void* {
        const auto bytes = to_file(file).bytes(to_part(part));
        return bytes.empty() ? nullptr : bytes.data();
    });
}

uint64_t tensorpool_mapped_file_size(const tensorpool_mapped_file* file) {
    return or_zero([&] { return to_file(file).file_bytes(); });
}

tensorpool_status tensorpool_mapped_file_copy(const tensorpool_mapped_file* file, uint64_t offset,
                                              void* to, size_t bytes) {
    return guarded([&] { to_file(file).copy_to(offset, to_buffer(to, bytes, "to")); });
}

tensorpool_advised tensorpool_mapped_file_prefetch(const tensorpool_mapped_file* file, int32_t when,
                                                   tensorpool_file_part part) {
    return advised([&] {
        return to_file(file).prefetch(to_enumeration("when", when, tensorpool::Prefetch::now),
                                      to_part(part));
    });
}

tensorpool_advised tensorpool_mapped_file_advise(const tensorpool_mapped_file* file,
                                                 int32_t pattern, tensorpool_file_part part) {
    return advised([&] {
        return to_file(file).advise(
            to_enumeration("pattern", pattern, tensorpool::AccessPattern::random), to_part(part));
    });
}

tensorpool_advised tensorpool_mapped_file_prefer_huge_pages(const tensorpool_mapped_file* file,
                                                            tensorpool_file_part part) {
    return advised([&] { return to_file(file).prefer_huge_pages(to_part(part)); });
}

tensorpool_advised tensorpool_mapped_file_place(tensorpool_mapped_file* file, int32_t placement,
                                                uint32_t node) {
    return advised([&] {
        return to_file(file).place(
            to_enumeration("placement", placement, tensorpool::NumaPlacement::bind), node);
    });
}

uint64_t tensorpool_mapped_file_resident_bytes(const tensorpool_mapped_file* file,
                                               tensorpool_file_part part) {
    return or_zero([&] { return to_file(file).resident_bytes(to_part(part)); });
}

tensorpool_advised tensorpool_mapped_file_drop_pages(const tensorpool_mapped_file* file,
                                                     tensorpool_file_part part) {
    return advised([&] { return to_file(file).drop_pages(to_part(part)); });
}

tensorpool_advised tensorpool_mapped_file_drop_from_cache(const tensorpool_mapped_file* file,
                                                          tensorpool_file_part part) {
    return advised([&] { return to_file(file).drop_from_cache(to_part(part)); });
}

tensorpool_status tensorpool_mapped_file_unmap(tensorpool_mapped_file* file,
                                               tensorpool_file_part part, uint64_t* unmapped) {
    return guarded([&] {
        const std::uint64_t bytes = to_file(file).unmap(to_part(part));
        if (unmapped != nullptr) *unmapped = bytes;
    });
}

tensorpool_memory_lock* tensorpool_memory_lock_create(const void* range, size_t bytes) {
    return reinterpret_cast<tensorpool_memory_lock*>(or_zero([&] {
        if (range == nullptr && bytes != 0) {
            refuse_null("range", (std::to_string(bytes) + " B").c_str());
        }
        return new MemoryLock({static_cast<const std::byte*>(range), bytes});
    }));
}

void tensorpool_memory_lock_destroy(tensorpool_memory_lock* lock) {
    delete reinterpret_cast<MemoryLock*>(lock);
}

tensorpool_status tensorpool_memory_lock_grow_to(tensorpool_memory_lock* lock, size_t bytes,
                                                 tensorpool_lock_outcome* outcome) {
    return guarded([&] {
        MemoryLock& of = to_lock(lock);
        tensorpool::LockOutcome result;
        const auto grow = [&] {
            result = of.grow_to(bytes);
            return to_c(result);
        };
        if (outcome == nullptr) {
            grow();
        } else {
            fill_in(outcome, "outcome", struct_name, first_version_bytes, grow);
        }
        if (!result) throw LockRefused(to_text(result));
    });
}

size_t tensorpool_memory_lock_locked_bytes(const tensorpool_memory_lock* lock) {
    return or_zero([&] { return to_lock(lock).locked_bytes(); });
}
