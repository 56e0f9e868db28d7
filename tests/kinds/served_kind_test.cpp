// What a pool does for servers of its blocks and for borrowers of its memory. The ones of plans are
// tested in tests/plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "kinds/kinds.hpp"
#include "pages/page_map.hpp"
#include "pool/pool.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A server that notes what it is called with.
class NotingServer : public kinds::BlockServer {
public:
    NotingServer() { kinds::block_servers().enter(*this); }
    ~NotingServer() { kinds::block_servers().leave(*this); }
    NotingServer(const NotingServer&) = delete;
    NotingServer& operator=(const NotingServer&) = delete;

    void* serve(const kinds::Request&, pages::SlowPath&) noexcept override { return nullptr; }
    bool note_free(void* p) noexcept override {
        const auto found = std::find(noted.begin(), noted.end(), p);
        if (found == noted.end()) return false;
        noted.erase(found);
        return true;
    }
    void give_back_idle(std::size_t bytes) noexcept override { wanted.push_back(bytes); }

    std::vector<void*> noted;
    std::vector<std::size_t> wanted;
};

/// Borrowed memory without blocks.
class Borrower : public pages::ServedMemory {
public:
    Block find(const void*) const noexcept override { return {}; }
    std::size_t block_bytes(const void*) const noexcept override { return 0; }
    bool deallocate(void*) noexcept override { return false; }
};

class ServedPool : public ::testing::Test {
protected:
    /// The pool's inside.
    detail::Pool& inside() {
        detail::Pool* found = nullptr;
        detail::pool_list().visit([&](detail::Pool& pool) {
            if (pool.parts().options.name == "served") found = &pool;
        });
        return *found;
    }

    MemoryPool pool_{PoolOptions{.name = "served", .checks = Checks::off}};
};

TEST_F(ServedPool, LentMemoryLeavesTheCapacityAndReturnsToIt) {
    constexpr std::size_t lent = 8 * mib;
    const Borrower borrower;
    pages::SlowPath path;
    pages::Span* const span = kinds::lend(inside().parts(), lent, 64, borrower, path);
    ASSERT_NE(span, nullptr);
    ASSERT_EQ(span->bytes(), lent);
    const std::size_t left = pool_.get_total_capacity();
    void* const block = pool_.allocate(lent);
    const std::size_t grown = pool_.get_total_capacity();
    EXPECT_GE(grown, left + lent - 4 * mib);
    pages::Changes changes;
    kinds::take_back(inside().parts(), *span, changes);
    EXPECT_EQ(pool_.get_total_capacity(), grown + lent);
    EXPECT_EQ(pool_.statistics().peak_capacity_bytes, grown + lent);
    pool_.deallocate(block, lent);
}

TEST_F(ServedPool, TakenBackMemoryAboveTheLimitIsReturned) {
    const Borrower borrower;
    pages::SlowPath path;
    pages::Span* const span = kinds::lend(inside().parts(), 8 * mib, 64, borrower, path);
    ASSERT_NE(span, nullptr);
    pool_.set_max_capacity(4 * mib);
    pages::Changes changes;
    kinds::take_back(inside().parts(), *span, changes);
    EXPECT_LE(pool_.get_total_capacity(), 4 * mib);
}

TEST_F(ServedPool, ServerNotesTheFreeOfAMarkedBlockOnce) {
    NotingServer first;
    NotingServer second;
    void* const block = pool_.allocate(16 * mib);
    void* const other = pool_.allocate(16 * mib);
    second.noted = {block, other};
    ASSERT_TRUE(kinds::note_free_of(inside().parts(), block));
    pool_.deallocate(block, 16 * mib);
    EXPECT_EQ(second.noted, std::vector<void*>{other});
    pool_.deallocate(other, 16 * mib);
    EXPECT_EQ(second.noted, std::vector<void*>{other}) << "it was not marked";
}

TEST_F(ServedPool, IdlePlansAreGivenBackOnlyIfThereAreAny) {
    NotingServer server;
    EXPECT_TRUE(kinds::give_back_idle_plans(mib));
    EXPECT_TRUE(server.wanted.empty());
    ++kinds::idle_plan_count;
    EXPECT_TRUE(kinds::give_back_idle_plans(mib));
    EXPECT_EQ(server.wanted, std::vector<std::size_t>{mib});
    {
        const std::lock_guard guard(kinds::block_servers());
        bool was_given_back = true;
        std::thread([&] { was_given_back = kinds::give_back_idle_plans(); }).join();
        EXPECT_FALSE(was_given_back) << "another thread holds the lock";
    }
    --kinds::idle_plan_count;
    EXPECT_EQ(server.wanted.size(), 1U);
}

}  // namespace
}  // namespace tensorpool
