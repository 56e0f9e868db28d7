#include "blocks/bucket_traits.hpp"

namespace tensorpool::blocks {
namespace {

BucketTraits::Cut cut_of(std::size_t stride) noexcept {
    if (platform::page_bytes() != pages::page_bytes) return BucketTraits::Cut::others;
    if (stride >= pages::page_bytes) return BucketTraits::Cut::whole_pages;
    const bool is_in_one_word = pages::page_bytes % stride == 0 && pages::page_bytes / stride <= 64;
    return is_in_one_word ? BucketTraits::Cut::whole_blocks : BucketTraits::Cut::others;
}

}  // namespace

BucketTraits::BucketTraits(unsigned its_number, const BucketSources& shared) noexcept
    : number(its_number),
      sources(shared),
      layout(series_layouts[shared.series][number]),
      block_bytes(base::block_bytes(shared.series, number)),
      kind(shared.is_marked ? pages::PageKind::marked
                            : pages::kind_of_bucket(number, shared.series)),
      cut(cut_of(layout.stride)),
      blocks_in_page(static_cast<unsigned>(pages::page_bytes / layout.stride)) {}

}  // namespace tensorpool::blocks
