// SPDX-License-Identifier: Apache-2.0

/// Makes a plane smaller: each sample of the result is the mean of the samples that fall on it. Allocates nothing
/// once made.
struct BoxReducer: ~Copyable {
    private let width: Int
    private let height: Int
    private let targetWidth: Int
    private let targetHeight: Int
    /// Bytes from one sample to the next: 2 for one component of interleaved chroma.
    private let step: Int
    /// Sums of a column over the rows of one band.
    private let sums: UnsafeMutablePointer<UInt32>
    /// First column of each sample of the result, and the end.
    private let columns: UnsafeMutablePointer<Int32>

    /// - Precondition: `targetWidth <= width`, `targetHeight <= height`.
    init(width: Int, height: Int, step: Int = 1, targetWidth: Int, targetHeight: Int) {
        precondition(targetWidth <= width && targetHeight <= height, "a reducer only makes smaller")
        self.width = width
        self.height = height
        self.step = step
        self.targetWidth = targetWidth
        self.targetHeight = targetHeight
        sums = .allocate(capacity: width * step)
        columns = .allocate(capacity: targetWidth + 1)
        for column in 0...targetWidth { columns[column] = Int32(column * width / targetWidth * step) }
    }

    deinit {
        sums.deallocate()
        columns.deallocate()
    }

    /// Reduces a plane. Rows of `source` are `stride` bytes apart, those of `target` `targetStride`.
    func reduce(
        _ source: UnsafePointer<UInt8>, stride: Int, into target: UnsafeMutablePointer<UInt8>, targetStride: Int
    ) {
        let count = width * step
        for row in 0..<targetHeight {
            let top = row * height / targetHeight
            let bottom = (row + 1) * height / targetHeight
            let first = source + top * stride
            for x in 0..<count { sums[x] = UInt32(first[x]) }
            for y in (top + 1)..<max(bottom, top + 1) {
                let line = source + y * stride
                for x in 0..<count { sums[x] &+= UInt32(line[x]) }
            }
            let result = target + row * targetStride
            var begin = Int(columns[0])
            for column in 0..<targetWidth {
                let end = Int(columns[column + 1])
                var sum: UInt32 = 0
                var x = begin
                while x < end {
                    sum &+= sums[x]
                    x &+= step
                }
                let samples = UInt32((end - begin) / step * (bottom - top))
                result[column] = UInt8(truncatingIfNeeded: (sum &+ samples / 2) / samples)
                begin = end
            }
        }
    }
}
