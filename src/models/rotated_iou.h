// Overlap of boxes that are turned about the vertical axis.
#pragma once

#include "models/box3d.h"

namespace strobe::models {

// Area that two boxes share seen from above, in square metres: one rectangle clipped by the sides of the other
// (Sutherland and Hodgman 1974), in the first one's own axes, where clipping compares one coordinate. A box without
// area or with a number that is not finite shares nothing.
float bev_intersection(const Box3d& a, const Box3d& b);
float bev_iou(const Box3d& a, const Box3d& b);
float iou_3d(const Box3d& a, const Box3d& b);
// Of the boxes turned to the nearer of 0 and 90 degrees: what anchors are matched by (Yan et al. 2018, SECOND).
float nearest_bev_iou(const Box3d& a, const Box3d& b);

}  // namespace strobe::models
