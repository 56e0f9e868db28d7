#include "blocks/quarantine.hpp"

#include "platform/platform.hpp"

namespace tensorpool::blocks {

Quarantine::~Quarantine() {
    if (queue_ != nullptr) platform::unmap(queue_, max_blocks * sizeof(Block));
}

bool Quarantine::add(Block block) noexcept {
    if (block.bytes > max_bytes_) return false;
    const std::lock_guard guard(mutex_);
    if (queue_ == nullptr) {
        queue_ =
            static_cast<Block*>(platform::map(max_blocks * sizeof(Block), platform::page_bytes()));
        if (queue_ == nullptr) return false;
    }
    if (end_ - begin_ == max_blocks) return false;
    queue_[end_++ % max_blocks] = block;
    bytes_ += block.bytes;
    return true;
}

Quarantine::Block Quarantine::pop() noexcept {
    const Block block = queue_[begin_++ % max_blocks];
    bytes_ -= block.bytes;
    return block;
}

unsigned Quarantine::take_excess(Block* blocks, unsigned max_count) noexcept {
    const std::lock_guard guard(mutex_);
    if (!exceeds()) return 0;
    // A sixteenth below the limit, so that only some frees take blocks out, several at a time.
    unsigned count = 0;
    while (count < max_count && begin_ != end_ && (exceeds() || bytes_ > max_bytes_ / 16 * 15)) {
        blocks[count++] = pop();
    }
    return count;
}

unsigned Quarantine::take(Block* blocks, unsigned max_count) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count && begin_ != end_) blocks[count++] = pop();
    return count;
}

}  // namespace tensorpool::blocks
