// SPDX-License-Identifier: Apache-2.0

/// The kernel's side of a camera: all calls by which this plugin reaches devices.
///
/// Errors come back as numbers (errno), so that a test can answer with any of them. [any thread]
protocol DeviceCalls: Sendable {
    /// A descriptor, or the negative errno.
    func open(_ path: String) -> Int32
    func close(_ device: Int32)
    /// 0, or the errno. Called again by the caller on EINTR.
    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32
    /// Nil where the kernel refuses.
    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer?
    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int)
    /// What poll(2) says of a device: its events, 0 after the time is over; the negative errno.
    func wait(_ device: Int32, milliseconds: Int32) -> Int32

    /// Processors that this process may use.
    var processors: Int { get }

    /// Names in a folder, sorted; none where it cannot be read.
    func names(in folder: String) -> [String]
    /// The file that a path finally leads to; nil where there is none.
    func realPath(_ path: String) -> String?
    /// The text of a symbolic link; nil for anything else.
    func link(_ path: String) -> String?
    /// The first bytes of a small file, without control characters.
    func text(of file: String) -> String?
    /// The group that a file belongs to.
    func group(of path: String) -> String?
}

/// Which calls the stages of this process use: the kernel's, or those of a test.
enum DeviceCallsInUse {
    @TaskLocal static var current: any DeviceCalls = KernelCalls()
}
