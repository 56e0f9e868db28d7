#include "rest/in_place/messages.hpp"

#include <cstdio>

namespace tensorpool::stashing {

std::string block_message(const char* call, const char* name, const void* block) {
    char address[24];
    std::snprintf(address, sizeof(address), "%p", block);
    std::string text = std::string("tensorpool: ") + call + ": ";
    if (*name != '\0') text += std::string("'") + name + "', ";
    return text + "block " + address + ": ";
}

std::string refused_message(const FrozenBlock::Settings& settings, bool is_whole) {
    return block_message("freeze", settings.name, settings.block) +
           "the system refused to watch or to drop its pages; a frozen block takes up to four of "
           "the mappings that vm.max_map_count allows" +
           (is_whole ? ""
                     : "; it stays frozen, because the system provides no memory for what rests "
                       "already");
}

std::string thaw_message(const FrozenBlock& block, std::uint32_t piece, Done done) {
    return block_message("thaw", block.name(), block.block()) + "piece " + std::to_string(piece) +
           " of " + std::to_string(block.piece_count()) + " cannot come back: " + reason_of(done);
}

const char* reason_of(Done done) noexcept {
    return done == Done::damaged ? "its encoding was overwritten; expected the stored checksum"
                                 : "the system provides no memory for it";
}

}  // namespace tensorpool::stashing
