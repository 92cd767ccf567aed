// SPDX-License-Identifier: Apache-2.0

extension VideoFormat {
    /// How long work on every pixel of a picture takes, for ``StageDemand/cost``.
    ///
    /// - Parameter nanosecondsPerPixel: Measured on any processor of the last ten years: the planner compares stages
    ///   with each other.
    public func cost(nanosecondsPerPixel: Double) -> MediaTime {
        MediaTime(seconds: Double(width) * Double(height) * nanosecondsPerPixel / 1e9)
    }
}
