#include "pool/pool.hpp"

#include "watch/guards/guarded_area.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using events::Misuse;
using events::MisuseKind;
using platform::FaultAccess;
using watch::GuardedBlock;

/// What is known about an access to protected memory.
struct Fault {
    bool is_ours = false;
    Misuse misuse = {.kind = MisuseKind::access_beyond};
    char owner[48] = {};
    char words[256] = {};
};

const char* verb(FaultAccess access) noexcept {
    if (access == FaultAccess::write) return "write to";
    return access == FaultAccess::read ? "read of" : "access to";
}

void explain(Fault& fault, const void* address, const GuardedBlock& block,
             FaultAccess access) noexcept {
    const bool in_use = block.state.load(std::memory_order_acquire) == GuardedBlock::State::in_use;
    const auto offset = static_cast<const char*>(address) - block.begin;
    const auto end = static_cast<std::ptrdiff_t>(block.requested);
    fault.is_ours = true;
    fault.misuse = {.kind = in_use ? MisuseKind::access_beyond : MisuseKind::access_after_free,
                    .pointer = address,
                    .size = block.requested,
                    .requested = block.requested,
                    .owner = block.pool_name.data(),
                    .allocated = {block.allocated.thread, block.allocated.view()},
                    .freed = {block.freed.thread, block.freed.view()}};
    std::snprintf(
        fault.words, sizeof fault.words, "pool '%s': %s %p, %td B %s the block %p of %zu B%s",
        block.pool_name.data(), verb(access), address,
        offset < 0      ? -offset
        : offset >= end ? offset - end
                        : offset,
        offset < 0      ? "before"
        : offset >= end ? "beyond the end of"
                        : "into",
        static_cast<const void*>(block.begin), block.requested, in_use ? "" : ", which was freed");
}

// Memory of a hardened pool: the end of a span, or whole pages that wait in the quarantine. No lock
// is taken: the program is about to end, and its records are rarely in the middle of a change.
void explain_span(Fault& fault, const void* address, FaultAccess access) noexcept {
    const pages::AddressSpace& space = pages::address_space();
    const unsigned pool = space.lender_of(address);
    if (pool == pages::AddressSpace::max_pools) return;
    const pages::PageEntry entry = space.map().find(address, pool);
    if (entry.empty() || !entry.has_span()) return;
    const pages::Span& span = *entry.span();
    const char* const begin = space.address_of(span.first_page);
    if (!blocks::thread_registry().name_of(pool, fault.owner, sizeof fault.owner)) return;
    fault.is_ours = true;
    fault.misuse.pointer = address;
    fault.misuse.owner = fault.owner;
    if (entry.is_bucket() || entry.is_marked()) {
        fault.misuse.size = entry.is_marked() ? base::block_bytes(0, span.marked_bucket())
                                              : base::block_bytes(entry.series(), entry.bucket());
        std::snprintf(fault.words, sizeof fault.words,
                      "pool '%s': %s %p, beyond the last block of a span of blocks of %zu B",
                      fault.owner, verb(access), address, fault.misuse.size);
        return;
    }
    const std::uint64_t recorded = span.requested_bytes.load(std::memory_order_relaxed);
    const bool in_use = recorded != 0;
    const std::size_t requested = recorded == pages::Span::nothing ? 0 : recorded;
    fault.misuse.size = span.bytes();
    if (in_use) fault.misuse.requested = requested;
    if (!in_use) fault.misuse.kind = MisuseKind::access_after_free;
    std::snprintf(fault.words, sizeof fault.words,
                  "pool '%s': %s %p, at offset %td of the block %p of %zu B%s", fault.owner,
                  verb(access), address, static_cast<const char*>(address) - begin,
                  static_cast<const void*>(begin), in_use ? requested : span.bytes(),
                  in_use ? ", beyond its end" : ", which was freed");
}

void look(Fault& fault, const void* address, FaultAccess access) noexcept {
    if (const GuardedBlock* const block = watch::GuardedArea::find_near(address)) {
        explain(fault, address, *block, access);
    } else {
        explain_span(fault, address, access);
    }
}

void stop_if_ours(const void* address, FaultAccess access) noexcept {
    Fault fault;
    look(fault, address, access);
    if (fault.is_ours) events::stop_at_misuse(fault.misuse, "%s", fault.words);
}

}  // namespace

void stop_at_faults() noexcept {
    // Without the handler, the system ends the program at the access, without a report.
    (void)platform::handle_faults(stop_if_ours);
}

std::size_t describe_fault(const void* address, char* text, std::size_t bytes) noexcept {
    Fault fault;
    look(fault, address, FaultAccess::unknown);
    if (!fault.is_ours || bytes == 0) return 0;
    return events::describe_misuse(fault.misuse, "fatal", fault.words,
                                   {.thread = platform::current_thread_id()}, text, bytes);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
