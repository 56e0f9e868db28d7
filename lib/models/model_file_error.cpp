#include <tensorpool/model_file.hpp>

namespace tensorpool {

ModelFileError::ModelFileError(const std::string& file, const std::string& field,
                               std::uint64_t offset, const std::string& problem)
    : std::runtime_error("tensorpool: " + file + ": " + field + ", at byte " +
                         std::to_string(offset) + ": " + problem),
      field_(field),
      offset_(offset) {}

}  // namespace tensorpool
