#include "architecture/layer_table.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace tensorpool::architecture {

LayerTable LayerTable::read(std::istream& text, const std::string& name) {
    LayerTable table;
    std::string line;
    for (int number = 1; std::getline(text, line); ++number) {
        std::istringstream words(line);
        std::string kind;
        if (!(words >> kind) || kind.starts_with('#')) continue;
        try {
            if (kind == "layer" || kind == "product" || kind == "facade") {
                table.add_layer(words, kind);
            } else if (kind == "header") {
                table.add_header(words);
            } else if (kind == "folder") {
                table.add_folder(words);
            } else {
                throw std::runtime_error(
                    "'" + kind + "', expected 'layer', 'product', 'facade', 'header' or 'folder'");
            }
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(name + ':' + std::to_string(number) + ": " + error.what());
        }
    }
    return table;
}

void LayerTable::add_layer(std::istream& words, const std::string& kind) {
    std::string layer;
    if (!(words >> layer)) throw std::runtime_error("a layer without a name");
    if (has(layer)) throw std::runtime_error("layer '" + layer + "' is listed twice");
    std::set<std::string> used;
    for (std::string word; words >> word;) {
        if (!has(word)) {
            throw std::runtime_error("layer '" + layer + "' uses '" + word +
                                     "', expected a layer of an earlier line");
        }
        if (facades_.contains(word)) {
            throw std::runtime_error("layer '" + layer + "' uses the facade '" + word + "'");
        }
        if (kind == "layer" && products_.contains(word)) {
            throw std::runtime_error("layer '" + layer + "' of the core uses the product '" + word +
                                     "'");
        }
        used.insert(word);
    }
    if (kind == "product") products_.insert(layer);
    if (kind == "facade") facades_.insert(layer);
    used_by_.emplace(layer, std::move(used));
}

void LayerTable::add_header(std::istream& words) {
    std::string file;
    std::string layer;
    if (!(words >> file >> layer))
        throw std::runtime_error("expected 'header FILE LAYER FOREIGN…'");
    if (!has(layer)) throw std::runtime_error("header of an unknown layer '" + layer + "'");
    if (!headers_.emplace(file, layer).second) {
        throw std::runtime_error("header '" + file + "' is listed twice");
    }
    for (std::string foreign; words >> foreign;) foreign_[file].insert(foreign);
}

void LayerTable::add_folder(std::istream& words) {
    std::string folder;
    std::string foreign;
    if (!(words >> folder >> foreign))
        throw std::runtime_error("expected 'folder FOLDER FOREIGN…'");
    const std::string layer = folder.substr(0, folder.find('/'));
    if (!has(layer)) throw std::runtime_error("folder of an unknown layer '" + layer + "'");
    do foreign_[folder + '/'].insert(foreign);
    while (words >> foreign);
}

bool LayerTable::may_include(const std::string& header, const std::string& included) const {
    const auto line = foreign_.find(header);
    if (line == foreign_.end()) return false;
    return std::ranges::any_of(line->second, [&](const std::string& foreign) {
        return foreign.ends_with('/') ? included.starts_with(foreign) : included == foreign;
    });
}

bool LayerTable::may_use(const std::string& layer, const std::string& used) const {
    return layer == used || used_by_.at(layer).contains(used);
}

bool LayerTable::may_include_file(const std::string& layer, const std::string& used,
                                  const std::string& file) const {
    const bool is_of_others = facades_.contains(layer) && products_.contains(used);
    return may_use(layer, used) && (!is_of_others || file.ends_with("_table.hpp"));
}

std::string LayerTable::allowed(const std::string& layer) const {
    std::string list;
    for (const std::string& used : used_by_.at(layer)) {
        list += (list.empty() ? "" : ", ") + used;
    }
    return list.empty() ? "the standard library only" : list;
}

}  // namespace tensorpool::architecture
