#include "blocks/bucket_set.hpp"
#include "blocks/cache.hpp"

namespace tensorpool::blocks {

void Cache::claim() noexcept {
    lock_.claim();
    large.lock.claim();
}

bool Cache::close() noexcept {
    if (!lock_.is_claimed() || !large.lock.is_claimed()) return false;
    for (MagazinePair& pair : pairs_) {
        was_closed_ ? pair.loaded.close_again() : pair.loaded.close();
    }
    was_closed_ = true;
    return true;
}

void Cache::take_back(pages::Changes& changes) noexcept {
    std::size_t exposed = 0;
    for (MagazinePair& pair : pairs_) {
        exposed += pair.take_back(changes);
        room_.give_back(pair);
        room_.forget_growth(pair);
    }
    if (exposed_to() != nullptr) exposed_to()->refund(exposed);
    large.empty(changes);
}

void Cache::end_claim() noexcept {
    lock_.end_claim();
    large.lock.end_claim();
}

}  // namespace tensorpool::blocks
