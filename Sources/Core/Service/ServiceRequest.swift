/// A service as a chain file asks for it.
public struct ServiceRequest: Sendable {
    /// Its key in the chain file: `control`.
    public var key: String
    public var type: ServiceType
    /// Its options, checked.
    public var options: [JSONNode.Member]
    /// The chain file's name as the user wrote it.
    public var file: String

    public init(key: String, type: ServiceType, options: [JSONNode.Member], file: String) {
        self.key = key
        self.type = type
        self.options = options
        self.file = file
    }

    /// [control thread] The service; opens nothing.
    ///
    /// - Throws: ``FrameHostErrors`` with the places of options that it does not take, or what its `init` throws.
    public func make() throws -> any Service {
        try type.make(options) { option, text in
            FaultPlace(file: file, position: text, path: option.isEmpty ? key : "\(key).\(option)")
        }
    }
}
