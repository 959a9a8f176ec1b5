import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.security.ProtectionDomain;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.pool.TypePool;

/**
 * A Java agent: Beam's servers, which listen on all network interfaces whatever they are told, listen on loopback only.
 */
public final class LoopbackServers implements ClassFileTransformer {
  public static void premain(String arguments, Instrumentation instrumentation) {
    instrumentation.addTransformer(new LoopbackServers());
  }

  @Override
  public byte[] transform(
      ClassLoader loader, String path, Class<?> loaded, ProtectionDomain domain, byte[] code) {
    if (path == null || !path.endsWith("/io/grpc/netty/NettyServerBuilder")) {
      return null;
    }
    // What a transformer throws, Java ignores: the servers would listen on all interfaces, without a word.
    try {
      return onLoopback(path.replace('/', '.'), loader, code);
    } catch (Throwable error) {
      error.printStackTrace();
      System.err.println("LoopbackServers: " + path + " cannot be kept on loopback; this Java process ends");
      Runtime.getRuntime().halt(1);
      throw error;
    }
  }

  private static byte[] onLoopback(String name, ClassLoader loader, byte[] code) {
    ClassFileLocator classes =
        new ClassFileLocator.Compound(
            ClassFileLocator.Simple.of(name, code), ClassFileLocator.ForClassLoader.of(loader));
    TypeDescription builder = TypePool.Default.of(classes).describe(name).resolve();
    ElementMatcher.Junction<MethodDescription> ofAddress = isConstructor().and(takesArgument(0, SocketAddress.class));
    if (builder.getDeclaredMethods().filter(ofAddress).isEmpty()) {
      throw new IllegalStateException(name + " has no constructor that takes an address");
    }
    return new ByteBuddy()
        .redefine(builder, classes)
        .visit(Advice.to(Loopback.class).on(ofAddress))
        .make()
        .getBytes();
  }

  /** Runs inside the constructor. */
  public static final class Loopback {
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(value = 0, readOnly = false) SocketAddress address) {
      if (address instanceof InetSocketAddress
          && ((InetSocketAddress) address).getAddress() != null
          && ((InetSocketAddress) address).getAddress().isAnyLocalAddress()) {
        address = new InetSocketAddress(InetAddress.getLoopbackAddress(), ((InetSocketAddress) address).getPort());
      }
    }
  }
}
