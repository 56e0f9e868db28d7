// Loops over whole planes that the compiler turns into vector instructions. Elements may lie at any
// address.

#include "rest/pieces/planes.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace tensorpool::stashing {
namespace {

template <class Element, bool is_rotated>
void split(const std::byte* from, std::size_t count, std::byte* to) noexcept {
    for (std::size_t plane = 0; plane < sizeof(Element); ++plane) {
        std::byte* const out = to + plane * count;
        for (std::size_t i = 0; i < count; ++i) {
            Element element;
            std::memcpy(&element, from + i * sizeof(Element), sizeof(Element));
            if constexpr (is_rotated) element = std::rotl(element, 1);
            out[i] = static_cast<std::byte>(element >> (8 * plane));
        }
    }
}

template <class Element, bool is_rotated, std::size_t... plane>
void merge(const PlanePointers& planes, std::size_t count, std::byte* to,
           std::index_sequence<plane...>) noexcept {
    const std::byte* const in[] = {planes[plane]...};
    for (std::size_t i = 0; i < count; ++i) {
        auto element =
            static_cast<Element>((... | (static_cast<Element>(in[plane][i]) << (8 * plane))));
        if constexpr (is_rotated) element = std::rotr(element, 1);
        std::memcpy(to + i * sizeof(Element), &element, sizeof(Element));
    }
}

/// Calls `use` with the type of an element, and whether it is rotated, as template arguments.
template <class Use>
void with_element(const ElementLayout& layout, const Use& use) noexcept {
    const auto with_type = [&]<class Element>(Element) {
        layout.is_rotated ? use.template operator()<Element, true>()
                          : use.template operator()<Element, false>();
    };
    if (layout.width == 2) return with_type(std::uint16_t{});
    if (layout.width == 4) return with_type(std::uint32_t{});
    with_type(std::uint64_t{});
}

}  // namespace

void split_planes(const std::byte* from, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        split<Element, is_rotated>(from, count, to);
    });
}

void merge_planes(const PlanePointers& planes, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        merge<Element, is_rotated>(planes, count, to, std::make_index_sequence<sizeof(Element)>());
    });
}

}  // namespace tensorpool::stashing
