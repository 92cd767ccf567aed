// SPDX-License-Identifier: Apache-2.0

/// A service as a chain file asks for it.
public struct ServiceRequest: Sendable {
    /// Its key in the chain file: `control`.
    public var key: String
    /// The kind of service.
    public var type: ServiceType
    /// Its options, as the file has them.
    public var options: [JSONNode.Member]
    /// The chain file's name as the user wrote it.
    public var file: String

    /// Asks for a service.
    public init(key: String, type: ServiceType, options: [JSONNode.Member], file: String) {
        self.key = key
        self.type = type
        self.options = options
        self.file = file
    }

    /// [control thread] Makes the service, which opens nothing yet.
    ///
    /// - Throws: ``FrameHostErrors`` with the places of options that the service does not take, or what its `init`
    ///   throws.
    public func make() throws -> any Service {
        try type.make(options) { option, text in
            FaultPlace(file: file, position: text, path: option.isEmpty ? key : "\(key).\(option)")
        }
    }
}
