#include <tensorpool/stash.hpp>

namespace tensorpool {

StashError::StashError(const std::string& tensor, std::size_t piece, const std::string& problem)
    : std::runtime_error(
          "tensorpool: stash '" + tensor + "': " +
          (piece == no_piece ? problem : "piece " + std::to_string(piece) + ": " + problem)),
      tensor_(tensor),
      piece_(piece) {}

}  // namespace tensorpool
