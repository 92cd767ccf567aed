// SPDX-License-Identifier: Apache-2.0

import Shared

/// Each block of the region gets the mean of its samples.
enum Pixelate {
    /// [stage thread] Fills `layer` for one region.
    ///
    /// - Parameter blockSide: In pixels; made even, so that the blocks of chroma match those of luma.
    static func render(
        _ picture: Picture, _ region: EffectRegion, blockSide: Int, _ means: BlockMeans, into layer: EffectLayer
    ) {
        let side = max((blockSide + 1) / 2 * 2, 4)
        let middleX = min(max(Int(region.centerX), region.left), region.right) / 2 * 2
        let middleY = min(max(Int(region.centerY), region.top), region.bottom) / 2 * 2
        for index in 0..<3 {
            let shift = index == 0 ? 0 : 1
            let area = region.area(of: index)
            means.measure(
                Component(picture, index), area, middleX: middleX >> shift, middleY: middleY >> shift,
                blockSide: side >> shift)
            for y in 0..<area.rows {
                let target = layer[index] + y * area.columns
                let line = means.values + (y + means.offsetY) / means.side * means.columns
                var x = 0
                for column in 0..<means.columns {
                    let end = min((column + 1) * means.side - means.offsetX, area.columns)
                    (target + x).update(repeating: line[column], count: end - x)
                    x = end
                }
            }
        }
    }
}
