package kerberos_test

import (
	"context"
	"log"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/kerberos"
)

// A service authenticates by the keytab that its administrator gave it.
func Example() {
	mechanism, err := kerberos.New(kerberos.Keytab("app@EXAMPLE.COM", "/etc/myservice/app.keytab"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := framework.NewClient("zk1.example.com:2281", framework.WithSASL(mechanism))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	acl := framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "sasl", ID: "app@EXAMPLE.COM"})
	if _, err := client.Create(context.Background(), "/app", nil, acl); err != nil {
		log.Print(err)
	}
}
