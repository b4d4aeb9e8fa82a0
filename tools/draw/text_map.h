/* tools/draw/text_map.h - draws a heat map in block characters on a terminal. It shows the mean of
 * the heads, darker for larger weights, with the labels of the SVG map (svg.h). */
#ifndef WEFT_TOOLS_DRAW_TEXT_MAP_H
#define WEFT_TOOLS_DRAW_TEXT_MAP_H

#include "svg.h"

/* Draw the map. False: out of memory, or the stream has failed. */
bool text_heat_map(FILE *out, const struct svg_heat_map *map);

#endif
