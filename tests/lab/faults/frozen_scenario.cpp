// Blocks that are frozen in place, whose page faults a thread of the library serves.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/freeze.hpp>
#include <tensorpool/memory_pool.hpp>

#include "lab/faults/scenario.hpp"
#include "models/pool_model.hpp"
#include "platform/memory/page_faults.hpp"
#include "rest/in_place/frozen_block.hpp"

namespace tensorpool::faults {
namespace {

using testing::mismatch;

constexpr std::size_t piece_bytes = stashing::PieceTools::piece_bytes;
// More than the window holds, and a part of one.
constexpr std::size_t block_bytes = 5 * piece_bytes + 5 * 4096;
const FreezeOptions freeze_options = {.window_bytes = 4 * piece_bytes,
                                      .system_calls_may_fail = true};

/// A block and a copy of its content.
class Block {
public:
    Block(MemoryPool& pool, Failures failures) : pool_(pool), failures_(failures) {
        block_ = static_cast<unsigned char*>(pool.try_allocate(block_bytes));
        if (block_ == nullptr && failures == Failures::one)
            block_ = static_cast<unsigned char*>(pool.try_allocate(block_bytes));
        if (block_ == nullptr) {
            if (failures != Failures::many) mismatch("a block was refused");
            return;
        }
        for (std::size_t i = 0; i < block_bytes; ++i)
            bytes_[i] = static_cast<unsigned char>(i / piece_bytes + i % 7);
        std::memcpy(block_, bytes_.data(), block_bytes);
    }
    ~Block() { pool_.deallocate(block_, block_bytes); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    explicit operator bool() const { return block_ != nullptr; }
    void* get() const { return block_; }
    void no_more_failures() { failures_ = Failures::none; }

    /// Freezes or thaws it, as often as the refusals allow.
    void freeze() {
        attempt("tensorpool: freeze: ", [&] { tensorpool::freeze(pool_, block_, freeze_options); });
    }
    void thaw() {
        attempt("tensorpool: thaw: ", [&] { (void)tensorpool::thaw(block_); });
    }
    /// Reads all of it, writes to each other piece, and reads these again.
    void use() {
        check();
        for (std::size_t at = 0; at < block_bytes; at += 2 * piece_bytes) {
            ++block_[at];
            ++bytes_[at];
        }
        check();
    }
    void check() const {
        if (std::memcmp(block_, bytes_.data(), block_bytes) != 0) mismatch("content has changed");
    }

private:
    template <class Call>
    void attempt(std::string_view begin, const Call& call) {
        const bool was_frozen = is_frozen(block_);
        std::string last;
        for (int tries = 0; tries != 2; ++tries) {
            try {
                return call();
            } catch (const FreezeError& error) {
                last = error.what();
                if (!std::string_view(error.what()).starts_with(begin))
                    mismatch("an error begins otherwise: %s", error.what());
            }
            if (is_frozen(block_) != was_frozen && failures_ != Failures::many)
                mismatch("a failed call has changed the block");
            if (failures_ == Failures::none) mismatch("a call failed without a refusal");
            check();
            // A freeze that could not bring back what rests says that the block stays frozen.
            if (is_frozen(block_) != was_frozen) return;
        }
        if (failures_ == Failures::one) mismatch("after one refusal: %s", last.c_str());
    }

    MemoryPool& pool_;
    Failures failures_;
    unsigned char* block_ = nullptr;
    std::vector<unsigned char> bytes_ = std::vector<unsigned char>(block_bytes);
};

void make_pool(std::optional<MemoryPool>& pool, Failures failures) {
    PoolOptions options;
    options.name = "frozen";
    options.checks = Checks::off;
    for (int tries = 0; !pool && tries != 2; ++tries) {
        try {
            pool.emplace(options);
        } catch (const AllocationError&) {
            if (failures == Failures::none) throw;
        }
    }
    if (!pool && failures == Failures::one) mismatch("a pool was refused twice");
}

/// Uses the block in the child of a fork. A page fault that cannot be served ends the child, with a
/// line that the caller of the scenario checks.
void use_in_child(Block& block, Failures failures) {
    const pid_t child = fork();
    if (child == 0) {
        try {
            block.use();
            block.thaw();
            block.check();
            _exit(0);
        } catch (const std::exception& error) {
            _exit(1);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool is_ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (status != 0 && (failures == Failures::none || !is_ended))
        mismatch("a child of a fork ended with status 0x%x", static_cast<unsigned>(status));
}

}  // namespace

bool may_freeze() {
    const platform::FaultSource source = platform::open_fault_source();
    if (source.file >= 0) platform::close_fault_source(source);
    return source.scope != platform::FaultScope::none;
}

void run_scenario_with_frozen_blocks(Failures failures) {
    std::optional<MemoryPool> made;
    make_pool(made, failures);
    if (!made) return refuse_nothing();
    MemoryPool& pool = *made;
    {
        Block first(pool, failures);
        Block second(pool, failures);
        if (first && second) {
            first.freeze();
            // So that the handler has started: AddressSanitizer frees memory while a thread starts,
            // and its malloc is not made for forks.
            first.use();
            use_in_child(first, failures);
            second.freeze();
            first.thaw();
            first.use();
            first.freeze();
            second.use();
            use_in_child(second, failures);
        }
        refuse_nothing();
        if (first && second) {
            first.no_more_failures();
            second.no_more_failures();
            first.use();
            first.thaw();
            first.check();
            second.use();
            if (!is_frozen(second.get())) second.freeze();
        }
    }
    const FreezeStatistics now = freeze_statistics();
    if (now.blocks != 0) mismatch("%zu freed blocks are frozen", now.blocks);
    if (now.bytes_at_rest != 0) mismatch("%zu B are at rest, expected none", now.bytes_at_rest);
    pool.trim();
}

}  // namespace tensorpool::faults
