// realloc inside and outside of scopes of budgets: inside, what it returns is charged and refused
// as a new block is; outside, a charged block that moves is charged no longer.

#include <cerrno>
#include <cstdlib>

#include <malloc.h>

#include <tensorpool/budget.hpp>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool;
using namespace tensorpool::testing;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t sizes[] = {1,         100, 1000,    60 * kib, 64 * kib,
                                 100 * kib, mib, 3 * mib, 4 * mib};

std::size_t charge_of(void* p) {
    return is_of_pool(p) ? malloc_usable_size(p) : 0;
}

void charges_what_it_returns(std::size_t from, std::size_t to) {
    Budget budget("charged");
    void* block = hidden(std::malloc(from));
    fill(block, from, from);
    {
        const BudgetScope scope(budget);
        block = hidden(std::realloc(block, to));
    }
    const std::size_t kept = from < to ? from : to;
    expect(is_filled(block, kept, from), "the content inside the scope", to);
    expect(budget.in_use() == charge_of(block), "the charge of the block", budget.in_use());
    void* const charged = block;
    block = hidden(std::realloc(block, from));
    expect(is_filled(block, kept, from), "the content outside of the scope", from);
    expect(budget.in_use() == (block == charged ? charge_of(block) : 0),
           "the charge outside of the scope", budget.in_use());
    std::free(block);
    expect(budget.in_use() == 0, "no charge after the free", budget.in_use());
}

void refuses(std::size_t from, std::size_t to) {
    Budget budget("limited", {.hard = 2 * mib});
    void* const block = hidden(std::malloc(from));
    fill(block, from, from);
    void* moved = nullptr;
    {
        const BudgetScope scope(budget);
        errno = 0;
        moved = hidden(std::realloc(block, to));
    }
    expect(moved == nullptr && errno == ENOMEM, "a refusal", to);
    expect(is_filled(block, from, from), "the content after a refusal", from);
    expect(budget.in_use() == 0, "no charge after a refusal", budget.in_use());
    std::free(block);
}

}  // namespace

int main() {
    expect_interposed();
    for (const std::size_t from : sizes) {
        for (const std::size_t to : sizes) charges_what_it_returns(from, to);
        refuses(from, 5 * mib);
        refuses(from, 40 * mib);
    }
    refuses(4 * mib, 3 * mib);  // would fit in place
    return failures == 0 ? 0 : 1;
}
