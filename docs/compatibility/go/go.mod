module weir/compatibility

go 1.22

require (
	github.com/antoninbas/p4runtime-go-client v0.0.0
	github.com/p4lang/p4runtime v1.4.0-rc.5
	google.golang.org/grpc v1.56.3
	google.golang.org/protobuf v1.33.0
)

// The checkout: run.sh says where it is to be.
replace github.com/antoninbas/p4runtime-go-client => ./client
