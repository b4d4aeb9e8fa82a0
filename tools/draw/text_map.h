/* tools/draw/text_map.h - a heat map in block characters, for a terminal: the mean of the heads, darker
 * where it is larger, with the labels of the SVG map (svg.h). */
#ifndef WEFT_TOOLS_DRAW_TEXT_MAP_H
#define WEFT_TOOLS_DRAW_TEXT_MAP_H

#include "svg.h"

/* False: out of memory, or the stream has failed. */
bool text_heat_map(FILE *out, const struct svg_heat_map *map);

#endif
