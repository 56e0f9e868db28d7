#include "plan/sequence.hpp"

#include <algorithm>

#include "plan/checksum.hpp"

namespace tensorpool::planned {
bool same_requests(std::span<const Request> one, std::span<const Request> other) noexcept {
    return std::ranges::equal(one, other, [](const Request& a, const Request& b) {
        return a.bytes == b.bytes && a.alignment == b.alignment;
    });
}

std::uint64_t checksum_of(std::span<const Request> requests) noexcept {
    Checksum checksum;
    for (const Request& request : requests) {
        checksum.add(request.bytes);
        checksum.add(request.alignment);
    }
    return checksum.value();
}

std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests) {
    std::vector<TensorLifetime> lifetimes;
    lifetimes.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        if (!request.is_planned()) continue;
        lifetimes.push_back({.begin = static_cast<std::int64_t>(i),
                             .end = request.end,
                             .bytes = request.bytes,
                             .alignment = request.alignment});
    }
    return lifetimes;
}

std::uint64_t pool_peak_of(std::span<const Request> requests) {
    std::vector<std::uint64_t> freed(requests.size() + 1);  // before the request of this number
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        now -= freed[i];
        if (!requests[i].is_planned()) continue;
        now += requests[i].pool_bytes;
        freed[requests[i].end] += requests[i].pool_bytes;
        max = std::max(max, now);
    }
    return max;
}

}  // namespace tensorpool::planned
