// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How a picture is fitted into a place of another shape.
enum Fit: String, OptionChoice { case fill, contain, stretch }

/// A rectangle of whole pixels with even numbers, since two pixels of 4:2:0 share chroma in each direction.
struct Area: Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    /// Where a picture is drawn: the part of it that is read, and the part of `place` that it fills.
    ///
    /// - Parameter shape: The shown width of the whole picture divided by its shown height.
    static func fitting(_ width: Int, _ height: Int, shape: Double, into place: Area, _ fit: Fit) -> (
        from: Area, to: Area
    ) {
        let whole = Area(x: 0, y: 0, width: width & ~1, height: height & ~1)
        let wanted = Double(place.width) / Double(max(place.height, 1))
        var (from, to) = (whole, place)
        switch fit {
        case .stretch: break
        case .contain where shape > wanted:
            to.height = min(even(Int((Double(place.width) / shape).rounded())), place.height)
            to.y += even((place.height - to.height) / 2)
        case .contain:
            to.width = min(even(Int((Double(place.height) * shape).rounded())), place.width)
            to.x += even((place.width - to.width) / 2)
        case .fill where shape > wanted:
            from.width = min(even(Int((Double(whole.width) * wanted / shape).rounded())), whole.width)
            from.x = even((whole.width - from.width) / 2)
        case .fill:
            from.height = min(even(Int((Double(whole.height) * shape / wanted).rounded())), whole.height)
            from.y = even((whole.height - from.height) / 2)
        }
        return (from, to)
    }

    /// The largest even number up to `value`, but at least two where `value` is above 0.
    private static func even(_ value: Int) -> Int { max(value & ~1, 0) == 0 && value > 0 ? 2 : max(value & ~1, 0) }
}
